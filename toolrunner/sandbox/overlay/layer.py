"""The folders of one transaction: the upper layer, the kernel's work folder, and a note of what they belong to.

State on disk: `NAME/{upper,work,layer.json}` in a folder that no contained call can see. The note is written before the call runs
and again before anything is carried over, so that whoever finds the folder after a crash knows how far it came.
"""

import json
import os
import shutil
import stat
import time
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import final

from toolrunner.process.identity import starttime_of
from toolrunner.sandbox.places import state_home
from toolrunner.sandbox.user import User, can_reach

NOTE = "layer.json"

TICK_BOUND = 0.1
"""Seconds in which a file system's clock must go on: it counts in ticks of the kernel, of 10 ms at most."""


class NoLayer(Exception):
    """There is no place for a layer, or none of that name."""


class Stage(StrEnum):
    """How far a transaction came."""

    OPEN = "open"
    """Its call runs, or did when its host died."""
    KEPT = "kept"
    COMMITTING = "committing"
    """Some of it is carried over."""


@final
@dataclass(frozen=True, slots=True)
class Layer:
    """One transaction. `began` is the lower file system's time (ns): whatever has a later ctime was changed since, by others."""

    folder: str
    lower: str
    began: int
    user: User = None
    profile: str = ""
    stage: Stage = Stage.OPEN
    shut: tuple[str, ...] = ()
    """Paths below `lower`, relative, that the call may not write, whatever way it found: nothing is carried over there."""

    host: tuple[int, int] = (0, 0)
    """Number and start time of the program whose call it is."""

    @property
    def is_in_use(self) -> bool:
        """Whether its call may still run: an open one of a program that lives."""
        return self.stage is Stage.OPEN and starttime_of(self.host[0]) == self.host[1]

    @property
    def name(self) -> str:
        """What it is found by: the run id of its call."""
        return os.path.basename(self.folder)

    @property
    def upper(self) -> str:
        return os.path.join(self.folder, "upper")

    @property
    def work(self) -> str:
        return os.path.join(self.folder, "work")

    def at(self, stage: Stage) -> "Layer":
        """The same one step further, written down first."""
        moved = replace(self, stage=stage)
        _write_note(moved)
        return moved

    def remove(self) -> None:
        """Take it away. The kernel leaves a folder of mode 0 in `work`, which its owner has to open before."""
        inner = os.path.join(self.work, "work")
        if os.path.isdir(inner) and not os.path.islink(inner):
            os.chmod(inner, 0o700)
        shutil.rmtree(self.folder, onerror=_open_and_retry)


def _open_and_retry(_function: object, path: str, _error: object) -> None:
    """A folder that the call left without permission keeps its contents from us, unless we are root."""
    parent = os.path.dirname(path)
    for each in (parent, path):
        if not os.path.islink(each) and os.path.isdir(each):
            os.chmod(each, 0o700)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def make_layer(name: str, lower: str, user: User, profile: str, shut: tuple[str, ...] = ()) -> Layer:
    """A fresh one over `lower`. Raises NoLayer, or OSError when there is no room."""
    folder = os.path.join(_base(user), name)
    os.mkdir(folder, 0o711)
    own = os.getpid()
    layer = Layer(folder, lower, 0, user, profile, shut=shut, host=(own, starttime_of(own) or 0))
    for each in (layer.upper, layer.work):
        os.mkdir(each, 0o700)
        if user is not None:
            os.chown(each, *user)
    shutil.copymode(lower, layer.upper)  # the layer's top is the working directory's own mode inside
    layer = replace(layer, began=_next_tick(lower, layer))
    _write_note(layer)
    return layer


def layers() -> list[Layer]:
    """Those that are there, oldest first: kept ones, and what a host that died left."""
    found = [layer for base in _bases() if os.path.isdir(base) for name in os.listdir(base) if (layer := _read(base, name))]
    return sorted(found, key=lambda layer: layer.began)


def find_layer(prefix: str) -> Layer:
    """The one whose name begins so. Raises NoLayer."""
    fitting = [layer for layer in layers() if prefix and layer.name.startswith(prefix)]
    if len(fitting) != 1:
        raise NoLayer(f"{len(fitting) or 'no'} transactions have an id that begins with {prefix!r}")
    return fitting[0]


def _bases() -> tuple[str, str]:
    return os.path.join(state_home(), "changes"), f"/var/tmp/toolrunner-changes-{os.geteuid()}"  # noqa: S108 - checked below


def _base(user: User) -> str:
    """In the state folder; where a user whom we become cannot get there, in one of ours below /var/tmp. Raises NoLayer."""
    own, apart = _bases()
    if user is None or can_reach(own, user):
        os.makedirs(own, mode=0o700, exist_ok=True)
        return own
    try:
        os.mkdir(apart, 0o711)
    except FileExistsError:
        facts = os.lstat(apart)
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            raise NoLayer(f"{apart} is not ours alone; remove it") from None
    return apart


def _next_tick(lower: str, layer: Layer) -> int:
    """A time of the lower file system that is later than that of every change made so far.

    Its clock counts in ticks, so a change that was made just now has the time of now. The call waits for the next one.
    """
    same = os.stat(lower).st_dev == os.stat(layer.upper).st_dev
    probe = os.path.join(layer.folder, "tick")
    now = _touched(probe)
    until = time.monotonic() + TICK_BOUND
    while (later := _touched(probe)) <= now and time.monotonic() < until:
        time.sleep(0.0005)
    os.unlink(probe)
    return later if same else max(later, now)


def _touched(path: str) -> int:
    with open(path, "w", encoding="ascii") as file:
        file.write(".")
    return os.stat(path).st_ctime_ns


def _write_note(layer: Layer) -> None:
    path = Path(layer.folder, NOTE)
    fresh = path.with_suffix(".new")
    with fresh.open("w", encoding="utf-8") as file:
        json.dump(asdict(layer), file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _read(base: str, name: str) -> Layer | None:
    try:
        values = json.loads(Path(base, name, NOTE).read_text(encoding="utf-8"))
        user = tuple(values["user"]) if values["user"] is not None else None
        told = {key: values[key] for key in ("lower", "began", "profile")}
        shut, host = tuple(values["shut"]), tuple(values["host"])
        return Layer(os.path.join(base, name), **told, user=user, stage=Stage(values["stage"]), shut=shut, host=host)
    except (OSError, ValueError, KeyError, TypeError):  # not ours, or cut short by a crash before its call ran
        return None
