"""The file system as a call sees it: levels by path, the deepest rule deciding. Pure but for `pinned`, which looks what exists.

One table serves three readers: the mounts of a backend, the examples in profiles, and tools in this process that ask first.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

from toolrunner.sandbox.places import Places
from toolrunner.sandbox.profile import Filesystem, Network, View
from toolrunner.sandbox.words import Level

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""What programs are made of. Where one is a link it stays one."""

SYSTEM_FILES = tuple(
    f"/etc/{name}"
    for name in (
        "alternatives", "ca-certificates", "group", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
        "mime.types", "nsswitch.conf", "passwd", "pki", "protocols", "services", "ssl",
    )
)  # fmt: skip
"""Of /etc what ordinary programs look up, none of it a secret."""

TMP = ("/tmp", "/var/tmp")  # noqa: S108 - they are mounted over, not used

ROOT = "/"


@final
@dataclass(frozen=True, slots=True)
class Table:
    """Levels by absolute, normal path. Always holds the root."""

    levels: Mapping[str, Level]

    def level(self, path: str) -> Level:
        """What may be done at a path. A rule below a hidden folder opens its own place."""
        while path not in self.levels:
            path = os.path.dirname(path)
        return self.levels[path]

    def rules(self) -> list[tuple[str, Level]]:
        """All of them, parents first; none that says what the one above it says already."""
        ordered = sorted(self.levels.items(), key=lambda rule: (rule[0] != ROOT, rule[0].count(os.sep), rule[0]))
        return [(path, level) for path, level in ordered if path == ROOT or self.level(os.path.dirname(path)) is not level]

    def narrowed(self, other: "Table") -> "Table":
        """What both allow."""
        paths = {*self.levels, *other.levels}
        return Table({path: min(self.level(path), other.level(path)) for path in paths})

    def capped(self, paths: Iterable[str], most: Level) -> "Table":
        """The same with no more than `most` at each path and everywhere below it."""
        levels = dict(self.levels)
        for path in paths:
            for below in [each for each in levels if is_within(each, path)]:
                levels[below] = min(levels[below], most)
            levels[path] = min(self.level(path), most)
        return Table(levels)


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a folder, or below it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def table(filesystem: Filesystem, network: Network, places: Places) -> Table:
    """What a profile says, before what is protected and what is ours."""
    levels: dict[str, Level] = {ROOT: Level.READ if filesystem.view is View.HOST else Level.EMPTY}
    if filesystem.view is View.SYSTEM:
        levels.update(dict.fromkeys((*SYSTEM, *SYSTEM_FILES), Level.READ))
    if filesystem.private_tmp:
        levels.update(dict.fromkeys(TMP, Level.PRIVATE))
    if not network.socket_folders:
        levels.update(dict.fromkeys(places.sockets, Level.EMPTY))
    for paths, level in (
        (filesystem.allow_read, Level.READ),
        (filesystem.allow_write, Level.WRITE),
        (filesystem.deny_read, Level.HIDDEN),  # last: of two rules on one path the stricter decides
    ):
        levels.update((places.absolute(path), level) for path in paths)
    if places.cwd not in levels and Table(levels).level(places.cwd) in (Level.EMPTY, Level.PRIVATE):
        levels[places.cwd] = Level.READ  # a command has to be somewhere, also below a /tmp that is its own
    return Table(levels).capped([places.absolute(path) for path in filesystem.deny_write], Level.READ)


def resolved(given: Table) -> Table:
    """The same with every link followed, as the kernel would: a rule about a link is one about what it leads to as well."""
    levels = dict(given.levels)
    for path, level in given.levels.items():
        real = os.path.realpath(path)
        if real != path and path not in SYSTEM:
            levels.pop(path)
            levels[real] = min(level, given.levels.get(real, level))
    return Table(levels)


def write_roots(given: Table) -> list[str]:
    """The highest folders that may be written."""
    return [path for path, level in given.rules() if level is Level.WRITE]


def pins(given: Table) -> list[str]:
    """Folders between a write root and what is not writable in it.

    Each is mounted onto itself: a mount point cannot be renamed (EBUSY), else `mv .git x` would carry a protected `.git/hooks`
    away and leave its name free.
    """
    found: set[str] = set()
    for path, level in given.levels.items():
        folder = os.path.dirname(path)
        if level is Level.WRITE or given.level(folder) is not Level.WRITE:
            continue
        while given.levels.get(folder) is None and folder != ROOT:
            found.add(folder)
            folder = os.path.dirname(folder)
    return sorted(found, key=lambda path: (path.count(os.sep), path))
