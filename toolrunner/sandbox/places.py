"""Where things are for one call: working directory, home, what is ours, and what the host runs from. Reads the host only."""

import functools
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import final

from toolrunner.config import config_home


@final
@dataclass(frozen=True, slots=True)
class Places:
    """Absolute paths, resolved where they exist.

    `ours` are state, configuration and runtime folders of toolrunner, never reachable; `code` is what this host imported or is
    run by, never writable; `sockets` are the folders where a system keeps its sockets.
    """

    cwd: str
    home: str
    ours: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    sockets: tuple[str, ...] = ("/run",)

    def absolute(self, path: str) -> str:
        """A path as a profile writes it."""
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        return os.path.normpath(os.path.join(self.cwd, path))


EXAMPLE = Places("/workspace", "/home/user")
"""What the examples in profiles are about."""


def places(cwd: str) -> Places:
    """What is so now. `cwd` is absolute."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    sockets = ["/run", *([os.path.realpath(runtime)] if os.path.isabs(runtime) else [])]
    home = os.path.expanduser("~")
    return Places(os.path.realpath(cwd), os.path.realpath(home), _ours(runtime), _code(), tuple(dict.fromkeys(sockets)))


def state_home() -> str:
    """The state folder of ours (XDG Base Directory: an unset or relative XDG_STATE_HOME is ~/.local/state)."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = state if os.path.isabs(state) else os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "toolrunner")


def _ours(runtime: str) -> tuple[str, ...]:
    uid = os.geteuid()
    folders = [state_home(), str(config_home()), f"/tmp/toolrunner-{uid}", f"/var/tmp/toolrunner-changes-{uid}"]  # noqa: S108 - hidden, not used
    if os.path.isabs(runtime):
        folders.append(os.path.join(runtime, "toolrunner"))
    return tuple(os.path.realpath(folder) for folder in folders)


def _code() -> tuple[str, ...]:
    """The interpreter and every module that this process has imported: what a call changed there would run with our rights.

    A package is named once, by its top folder.
    """
    found = {_real(prefix) for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            found.add(_top(name, file))
    return _highest(frozenset(found))


@functools.lru_cache(maxsize=64)
def _highest(found: frozenset[str]) -> tuple[str, ...]:
    """Without what lies in another one."""
    kept: list[str] = []
    for path in sorted(filter(None, found), key=lambda path: path + os.sep):
        if not kept or not path.startswith(kept[-1] + os.sep):
            kept.append(path)
    return tuple(kept)


@functools.cache  # bounded by what is imported; and a link that is turned later did not lead to what was imported
def _top(name: str, file: str) -> str:
    """The file of a module, or the top folder of its package; empty for one that is in no file."""
    if not os.path.isabs(file):
        return ""
    path = Path(file)
    depth = name.count(".") if path.stem != "__init__" else name.count(".") + 1
    return _real(str(path.parents[depth - 1]) if 0 < depth <= len(path.parents) else file)


@functools.cache
def _real(path: str) -> str:
    return os.path.realpath(path)
