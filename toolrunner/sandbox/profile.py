"""Profile: what one file in `sandboxes/` says, and the check of its own examples when it is loaded. No state."""

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from toolrunner.config import SANDBOXES, Document, Loaded, Strict, given, load, of_workspace
from toolrunner.sandbox.words import BackendName, Guarantee

_SIZE = re.compile(r"([1-9][0-9]*) ?(B|KiB|MiB|GiB|TiB)")
_UNITS = {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}


def _bytes(value: object) -> object:
    """A number of bytes, or "512 MiB"."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value)
    if match is None:
        raise ValueError(f"{value!r} is no size; write a number of bytes, or one with B, KiB, MiB, GiB or TiB")
    return int(match[1]) << _UNITS[match[2]]


def _path(value: str) -> str:
    # Never taken for a pattern and never taken literally in silence: whoever writes one means more than one path.
    if not value or "\0" in value or any(mark in value for mark in "*?["):
        raise ValueError(f"{value!r}: a path of its own, not a pattern; a folder means everything in it")
    if value.startswith("~") and value != "~" and not value.startswith("~/"):
        raise ValueError(f"{value!r}: only ~ itself is known, the home folder of the user who runs the call")
    return value


Size = Annotated[int, BeforeValidator(_bytes), Field(gt=0)]
RulePath = Annotated[str, AfterValidator(_path)]
"""Absolute, below the home folder (`~/…`), or below the working directory of the call (`.`)."""


class View(StrEnum):
    """What is there before any rule."""

    HOST = "host"
    """The whole file system, to be read."""
    SYSTEM = "system"
    """Programs and libraries of the system (/usr, /bin, /lib, some of /etc), and nothing else."""


class Filesystem(Strict):
    """The deepest rule of a path decides; `deny_write` holds below it whatever else allows writing there."""

    view: View = View.HOST
    allow_read: tuple[RulePath, ...] = ()
    deny_read: tuple[RulePath, ...] = ()
    allow_write: tuple[RulePath, ...] = ()
    deny_write: tuple[RulePath, ...] = ()
    protect: bool = True
    private_tmp: bool = True


class NetworkMode(StrEnum):
    """Which network there is."""

    NONE = "none"
    HOST = "host"


class Network(Strict):
    """The network, and the folders in which the system keeps its sockets."""

    mode: NetworkMode = NetworkMode.NONE
    socket_folders: bool = False
    """Whether /run and the user's runtime folder are there: docker's, D-Bus's and the ssh agent's sockets lie in them."""


class Inherit(StrEnum):
    """Which variables of the host a call gets besides its own."""

    NONE = "none"
    CORE = "core"
    ALL = "all"


class Env(Strict):
    """`exclude` are names with * and ?, in any case of letters; a variable that the command itself brings is never kept back."""

    inherit: Inherit = Inherit.CORE
    exclude: tuple[str, ...] = ("*KEY*", "*TOKEN*", "*SECRET*", "*PASSW*", "*CREDENTIAL*", "*COOKIE*")
    set: Mapping[str, str] = Field(default_factory=dict)


class Limits(Strict):
    """Bounds without time. `memory` and `file_size` are per process (setrlimit(2)), `pids` per call."""

    memory: Size | None = None
    file_size: Size | None = None
    pids: Annotated[int, Field(gt=0)] | None = None


class Ending(StrEnum):
    """What is done with the changes of a transaction."""

    COMMIT = "commit"
    KEEP = "keep"
    DISCARD = "discard"


class TransactionRules(Strict):
    """Calls write into a layer over the working directory. `on_abort` is for every outcome but succeeded."""

    on_success: Ending = Ending.COMMIT
    on_abort: Ending = Ending.DISCARD


class Access(StrEnum):
    """What an example tries."""

    READ = "read"
    WRITE = "write"
    CONNECT = "connect"


class Expect(StrEnum):
    """What the profile is to answer."""

    ALLOW = "allow"
    DENY = "deny"


class Example(Strict):
    """One fact that the author of a profile states and that is checked whenever it is loaded.

    The working directory is /workspace then, and the home folder /home/user. `path` is left out with `connect`.
    """

    access: Access
    path: RulePath = "/"
    expect: Expect


class Profile(Document):
    """One file. `backend` `auto` takes what works here; `require` names guarantees without which nothing is started."""

    backend: BackendName = BackendName.AUTO
    require: tuple[Guarantee, ...] = ()
    filesystem: Filesystem = Filesystem()
    network: Network = Network()
    env: Env = Env()
    limits: Limits = Limits()
    transaction: TransactionRules | None = None
    examples: tuple[Example, ...] = ()


def load_profile(source: str | os.PathLike[str] | Mapping[str, Any]) -> Loaded[Profile]:
    """A profile by its name, from a file, or out of values. Its examples are checked by `Sandbox`. Raises ProfileError."""
    if isinstance(source, Mapping):
        return given(SANDBOXES, Profile, source)
    return load(SANDBOXES, Profile, source)


def workspace_profile(folder: Path) -> Loaded[Profile] | None:
    """The profile that a workspace brings, which can only narrow. Raises ProfileError."""
    return of_workspace(SANDBOXES, Profile, folder)
