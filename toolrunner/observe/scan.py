"""What a folder looks like, and what differs between two looks. No state; blocking, meant for a worker thread.

A look reads names and inodes only (lstat(2)): it never opens a file and never follows a symlink. It proves changes and never
absence: a write within one tick of the kernel's clock (up to 4 ms) after the first look may leave size and times as they were,
and what is written through a shared mapping may get its new time later.
"""

import math
import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

from toolrunner.errors import ConfigError
from toolrunner.facts import Attribution, Change, ChangeKind

Stamp = tuple[int, ...]
"""What is compared of one path. Any file: inode, mode, size, mtime_ns, ctime_ns. A directory: inode, mode, owner and group; its
times and size change with every name in it, which is told by that name."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of one look, so that watching a huge folder costs a known time and memory (about 300 bytes for a path)."""

    entries: int = 200_000
    seconds: float = 5.0

    def __post_init__(self) -> None:
        if self.entries < 1 or not math.isfinite(self.seconds) or self.seconds <= 0:
            raise ConfigError("the budget of a scan", (self.entries, self.seconds), "at least one entry and more than 0 seconds")


@final
@dataclass(frozen=True, slots=True)
class Snapshot:
    """One look. `complete` is False when the budget ran out or something in `unreadable` could not be read.

    `listed` are the folders that were read to their end: only of them is it known what was not in them. Paths are as Python has
    them (surrogate escapes for what is no UTF-8).
    """

    roots: tuple[str, ...]
    entries: Mapping[str, Stamp]
    listed: frozenset[str]
    unreadable: tuple[str, ...] = ()
    complete: bool = True

    def lacks(self, path: str) -> bool:
        """Whether `path` was certainly not there: a folder that was read to its end did not have it, or one above it."""
        while path not in self.entries:
            if printable(path) in self.unreadable:  # its name was read, or it is a root; the rest was refused
                return False
            folder, _ = os.path.split(path)
            if path in self.roots or folder in self.listed:
                return True
            path = folder
        return False


def snapshot(roots: Iterable[str | os.PathLike[str]], budget: Budget | None = None) -> Snapshot:
    """Look at `roots` before a call. A root may be given by a symlink; below it none is followed.

    Raises ConfigError when a root is not a directory that can be read: then watching it would be an empty promise.
    """
    real = real_roots(roots)
    for root in real:
        try:
            os.scandir(root).close()
        except OSError as error:
            raise ConfigError("a watched folder", printable(root), f"a directory that can be read ({error.strerror})") from error
    return _Look(real, budget or Budget()).take()


def real_roots(roots: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Their absolute paths without symlinks, sorted: two names of one folder are one root.

    Raises ConfigError when a relative one has nothing to be relative to.
    """
    real = set()
    for root in roots:
        try:
            real.add(os.path.realpath(root))
        except FileNotFoundError:  # getcwd(3)
            wanted = "an absolute path: this program's own working directory was removed"
            raise ConfigError("a watched folder", printable(os.fspath(root)), wanted) from None
    return tuple(sorted(real))


def rescan(before: Snapshot, budget: Budget | None = None) -> Snapshot:
    """Look again at the same places, after the call. A root that is gone by now is a change, not an error."""
    return _Look(before.roots, budget or Budget()).take()


def diff(before: Snapshot, after: Snapshot, attribution: Attribution = Attribution.SHARED) -> tuple[Change, ...]:
    """What certainly changed, sorted by path. A path that only one look knows counts when the other one certainly lacks it.

    `attribution` is what `Watch.finish` says; by default a change proves nothing about the call.
    """
    kinds: dict[str, ChangeKind] = {}
    for path, stamp in after.entries.items():
        if path not in before.entries:
            if before.lacks(path):
                kinds[path] = ChangeKind.CREATED
        elif before.entries[path] != stamp:
            kinds[path] = ChangeKind.MODIFIED
    for path in before.entries:
        if path not in after.entries and after.lacks(path):
            kinds[path] = ChangeKind.DELETED
    return tuple(Change(printable(path), kinds[path], attribution) for path in sorted(kinds))


def printable(path: str) -> str:
    r"""A path as text that can be encoded: each byte that is no UTF-8 becomes `\xNN`. Nothing else is changed."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@final
class _Look:
    """One look under way. State: what it found so far and what is left of its budget; used by one thread, once."""

    def __init__(self, roots: Iterable[str], budget: Budget) -> None:
        self._roots = tuple(roots)
        self._left = budget.entries
        self._until = time.monotonic() + budget.seconds
        self._entries: dict[str, Stamp] = {}
        self._listed: set[str] = set()
        self._unreadable: list[str] = []
        self._exhausted = False

    def take(self) -> Snapshot:
        for root in self._roots:
            self._walk(root)
        return Snapshot(
            self._roots,
            self._entries,
            frozenset(self._listed),
            tuple(printable(path) for path in sorted(self._unreadable)),
            complete=not self._exhausted and not self._unreadable,
        )

    def _walk(self, root: str) -> None:
        try:
            found = os.lstat(root)
        except FileNotFoundError:
            return
        except OSError:
            self._unreadable.append(root)
            return
        self._entries[root] = _stamp(found)
        folders = [root] if stat.S_ISDIR(found.st_mode) else []
        while folders and not self._exhausted:
            self._list(folders.pop(), folders)

    def _list(self, folder: str, folders: list[str]) -> None:
        if folder in self._listed:  # one root lies in another
            return
        try:
            with os.scandir(folder) as names:
                for name in names:
                    if not self._spend():
                        return
                    self._read(name, folders)
        except FileNotFoundError:  # deleted since its name was read
            self._entries.pop(folder, None)
        except OSError:  # EACCES, ELOOP, ENAMETOOLONG, a disk that fails
            self._unreadable.append(folder)
        else:
            self._listed.add(folder)

    def _read(self, name: "os.DirEntry[str]", folders: list[str]) -> None:
        try:
            found = name.stat(follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError:
            self._unreadable.append(name.path)
            return
        self._entries[name.path] = _stamp(found)
        if stat.S_ISDIR(found.st_mode):
            folders.append(name.path)

    def _spend(self) -> bool:
        self._left -= 1
        self._exhausted = self._left < 0 or time.monotonic() >= self._until
        return not self._exhausted


def _stamp(found: os.stat_result) -> Stamp:
    if stat.S_ISDIR(found.st_mode):
        return (found.st_ino, found.st_mode, found.st_uid, found.st_gid)
    return (found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
