"""Where calls get their cgroups: a cgroup v2 folder that was given, or the one this process is in, proved before it is used.

State: the open folder, from `open_room` to `Room.close`. What was asked for and cannot be given is refused with the reason.
"""

import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import final

import anyio

from toolrunner.errors import ConfigError
from toolrunner.process.keeping.cgroup import Cgroup
from toolrunner.process.keeping.messages import REAP_BOUND
from toolrunner.process.keeping.sweep import describe
from toolrunner.process.report import Listing

PREFIX = "toolrunner-"

LOOK_PAUSE = 0.005
"""Seconds between two looks whether a killed cgroup is empty. Only after a lost keeper; a keeper does it itself."""


class NoCgroup(Exception):
    """This folder cannot hold calls, for the reason given."""


@final
@dataclass(frozen=True, slots=True)
class CgroupLimits:
    """What one call may use: `memory` in bytes (memory.max, swap not counted), `processes` with threads (pids.max)."""

    memory: int | None = None
    processes: int | None = None

    def __post_init__(self) -> None:
        for what in ("memory", "processes"):
            value = getattr(self, what)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ConfigError(f"limit of {what}", value, "a whole number, 1 or more, or None")

    def files(self) -> dict[str, int]:
        """Control files and their values; the controller is the part of the name before the point."""
        wanted = {"memory.max": self.memory, "pids.max": self.processes}
        return {file: value for file, value in wanted.items() if value is not None}


@final
class Room:
    """A folder in which calls get cgroups of their own."""

    def __init__(self, path: Path, fd: int, limits: CgroupLimits) -> None:
        self.path, self.fd, self.limits = path, fd, limits

    @property
    def enforced(self) -> tuple[str, ...]:
        """What holds for each call in here, for its result."""
        return ("cgroup", *(f"{file}={value}" for file, value in self.limits.files().items()))

    def make(self) -> Cgroup:
        """A new cgroup with the limits set. Raises NoCgroup."""
        made = Cgroup(self.fd, PREFIX + secrets.token_hex(8))
        try:
            os.mkdir(made.name, 0o755, dir_fd=self.fd)
        except OSError as exc:
            raise NoCgroup(f"{str(self.path)!r}: no folder can be made in it: {exc.strerror}") from exc
        for file, value in self.limits.files().items():
            try:
                made.write(file, str(value))
            except OSError as exc:
                made.remove()
                raise NoCgroup(f"{file} cannot be set: {exc.strerror}") from exc
        return made

    def close(self) -> None:
        """Let the folder go."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def open_room(path: Path | None, limits: CgroupLimits) -> Room:
    """Open the folder, this process's own cgroup if none is given, and prove what is needed. Raises NoCgroup."""
    path = path if path is not None else own_cgroup()
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as exc:
        raise NoCgroup(f"{str(path)!r}: {exc.strerror}") from exc
    room = Room(path, fd, limits)
    try:
        _enable(room)
        trial = room.make()
        try:
            if not Path(path, trial.name, "cgroup.kill").exists():
                raise NoCgroup(f"{str(path)!r} is no cgroup v2 folder of Linux 5.14 or newer: it gives no cgroup.kill")
        finally:
            trial.remove()
    except BaseException:
        room.close()
        raise
    return room


def _enable(room: Room) -> None:
    """Have the controllers of the limits in the folders below. Raises NoCgroup."""
    needed = {file.partition(".")[0] for file in room.limits.files()}
    have, on = (_words(room.path / name) for name in ("cgroup.controllers", "cgroup.subtree_control"))
    if lacking := sorted(needed - have):
        raise NoCgroup(f"{str(room.path)!r} has no {' and no '.join(lacking)} controller, so that limit cannot be kept")
    if missing := sorted(needed - on):
        try:
            (room.path / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in missing), encoding="ascii")
        except OSError as exc:  # EBUSY: processes are in this very folder (cgroups(7), no internal processes)
            raise NoCgroup(f"{str(room.path)!r}: {' and '.join(missing)} cannot be handed down: {exc.strerror}") from exc


def _words(path: Path) -> set[str]:
    try:
        return set(path.read_text(encoding="ascii").split())
    except OSError:
        return set()


def own_cgroup() -> Path:
    """The cgroup v2 folder that this process is in (cgroups(7)). Raises NoCgroup."""
    try:
        inside = next(line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
        mounts = [line.split(" ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    except (OSError, StopIteration):
        raise NoCgroup("this process is in no cgroup of version 2") from None
    for fields in mounts:
        root, point, kind = fields[3], fields[4], fields[fields.index("-") + 1]
        if kind == "cgroup2" and (inside + "/").startswith(root.rstrip("/") + "/"):
            return Path(point, inside[len(root.rstrip("/")) :].lstrip("/"))
    raise NoCgroup("no cgroup of version 2 is mounted where this process is in it")


def describe_own() -> tuple[bool, str]:
    """Whether this process's own cgroup could hold calls, and the folder with its controllers, or why not."""
    try:
        room = open_room(None, CgroupLimits())
    except NoCgroup as exc:
        return False, str(exc)
    room.close()
    return True, f"{room.path} (controllers: {', '.join(sorted(_words(room.path / 'cgroup.controllers'))) or 'none'})"


async def end_cgroup(cgroup: Cgroup) -> Listing:
    """Kill what is in it and wait, R at most, until the kernel says that nobody is; who is left. Then remove it."""
    until = time.monotonic() + REAP_BOUND
    while cgroup.populated():
        cgroup.kill()
        if time.monotonic() > until:
            return [describe(pid) for pid in cgroup.members()] or [(0, -1, 0, "somebody in a cgroup below the call's", "")]
        await anyio.sleep(LOOK_PAUSE)
    cgroup.remove()
    return []
