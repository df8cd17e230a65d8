"""Following a path inside the roots, one name at a time and by descriptors, so that nothing can be swapped on the way.

What openat2(2) does with RESOLVE_BENEATH, and two things it does not do: an absolute symlink that ends inside a root is followed,
and the way may lead from one root into another. Each name is looked at without being followed (O_NOFOLLOW), a symlink is read
and its text walked like any other path, and `..` goes back to the descriptor that the way came by. So no step leaves a root,
whoever renames what meanwhile, and the magic links of /proc are mere text. State: the descriptors of one walk, closed at its end.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from toolrunner.errors import ToolError
from toolrunner.journal import is_journal, is_own
from toolrunner.tools.builtin.problems import refused
from toolrunner.tools.builtin.roots import Roots, printable

MOST_LINKS = 40
"""Symlinks on one way, as the kernel allows (path_resolution(7))."""

MOST_RESTARTS = 40
"""Times that a way may enter a root anew; each takes a symlink or a `..` at a root's edge, so more is a circle."""


@final
@dataclass(frozen=True, slots=True)
class Place:
    """Where a path ends: the `name` in `folder`, an open descriptor, and what was `found` there (None: nothing).

    `below` are the names that follow when `name` is a folder that is missing. `real` is the path without symlinks.
    """

    folder: int
    name: str
    found: os.stat_result | None
    real: str
    writable: bool
    below: tuple[str, ...] = ()


@contextlib.contextmanager
def follow(roots: Roots, path: str) -> Iterator[Place]:
    """Follow `path`. The place is good while the block runs.

    Raises:
        ToolError: it leads out of the roots, through something that is no folder, or in a circle; nobody may look.
    """
    walk = _Walk(roots, path)
    try:
        try:
            place = walk.whole()
        except OSError as error:
            raise refused(printable(path), error) from error
        yield place
    finally:
        walk.close()


def open_folder(name: str, folder: int) -> int:
    """A descriptor of a folder to go on from, never through a symlink. Raises OSError."""
    # O_PATH needs no right to list it, only to pass; where the system has no such thing, the folder must be readable.
    return os.open(name, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


@final
class _Walk:
    """One way. `_fds` and `_names` go from the root to where it is; `_rest` is still to be walked, the next name last."""

    def __init__(self, roots: Roots, path: str) -> None:
        self._roots, self._path = roots, path
        self._fds: list[int] = []
        self._names: list[str] = []
        self._rest: list[str] = []
        self._root = ""
        self._links = self._restarts = 0

    def close(self) -> None:
        """Let go of all descriptors."""
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()

    def whole(self) -> Place:
        """To the end of the path."""
        self._enter(self._roots.absolute(self._path))
        while self._rest:
            name = self._rest.pop()
            if name in ("", "."):
                continue
            if name == "..":
                self._up()
            elif (place := self._step(name)) is not None:
                return place
        # The path ends at a folder that was opened: "." in it is the folder itself.
        return self._place(".", os.fstat(self._fds[-1]))

    def _enter(self, absolute: str) -> None:
        """Begin again at the root of an absolute path."""
        self._restarts += 1
        inside = self._roots.of(absolute)
        if inside is None:
            raise self._roots.outside(self._path)
        if self._restarts > MOST_RESTARTS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        self.close()
        self._root, below = inside
        self._names = []
        self._rest = list(reversed(below.split("/")))
        self._fds.append(os.open(self._root, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC))

    def _up(self) -> None:
        if self._names:
            os.close(self._fds.pop())
            self._names.pop()
        else:  # a root has no symlink in its path, so the folder above it is the one that its text says
            self._enter("/".join([os.path.dirname(self._root).rstrip("/"), *reversed(self._rest)]) or "/")

    def _step(self, name: str) -> Place | None:
        """Go to `name`, or say that the way ends there."""
        try:
            found = os.stat(name, dir_fd=self._fds[-1], follow_symlinks=False)
        except FileNotFoundError:
            return self._missing(name)
        if stat.S_ISLNK(found.st_mode):
            self._link(name)
            return None
        if not any(one not in ("", ".") for one in self._rest) and not stat.S_ISDIR(found.st_mode):
            if self._rest:  # a slash behind a file's name asks for a folder (path_resolution(7))
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            return self._place(name, found)
        self._names.append(name)
        self._fds.append(open_folder(name, self._fds[-1]))
        return None

    def _link(self, name: str) -> None:
        self._links += 1
        if self._links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        try:
            target = os.readlink(name, dir_fd=self._fds[-1])
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            # readlink(2): it is no symlink any more, so it was replaced since it was looked at.
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
        if target.startswith("/"):
            self._enter("/".join([target, *reversed(self._rest)]))
        else:
            self._rest.extend(reversed(target.split("/")))

    def _missing(self, name: str) -> Place:
        below = tuple(one for one in reversed(self._rest) if one not in ("", "."))
        if ".." in below:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self._place(name, None, below)

    def _place(self, name: str, found: os.stat_result | None, below: tuple[str, ...] = ()) -> Place:
        real = os.path.join(self._root, *self._names, *(() if name == "." else (name,)), *below)
        if is_own(real, found):
            raise journals_own(self._roots, real)
        return Place(self._fds[-1], name, found, real, self._roots.is_writable(real), below)


def missing(roots: Roots, place: Place) -> ToolError:
    """Nothing is there."""
    return ToolError(f"{roots.shown(place.real)} is not there; look with list_dir or search", kind="not_found")


def journals_own(roots: Roots, real: str) -> ToolError:
    """What is there says what tools did, so no tool may have a say in it."""
    return ToolError(f"{roots.shown(real)} belongs to a journal of toolrunner; no tool may read or change it", kind="forbidden")


def wrong_kind(roots: Roots, place: Place, wanted: str) -> ToolError:
    """Something else is there."""
    assert place.found is not None
    return ToolError(f"{roots.shown(place.real)} is {kind_of(place.found)}, not {wanted}", kind="wrong_kind")


def kind_of(found: os.stat_result) -> str:
    """What it is, in words."""
    words = {
        stat.S_IFDIR: "a folder",
        stat.S_IFREG: "a file",
        stat.S_IFLNK: "a symlink",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
    }
    return words.get(stat.S_IFMT(found.st_mode), "a device")


def open_file(roots: Roots, place: Place) -> int:
    """The regular file at a place, opened for reading; whatever else it is, this never waits for anybody.

    Raises:
        ToolError: nothing is there, or no regular file, or one of the kernel's own.
    """
    if place.found is None:
        raise missing(roots, place)
    if not stat.S_ISREG(place.found.st_mode):
        raise wrong_kind(roots, place, "a file")
    try:
        # O_NONBLOCK: it may have become a named pipe since the look, whose open waits for a writer (fifo(7)).
        fd = os.open(place.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=place.folder)
    except OSError as error:
        raise refused(roots.shown(place.real), error) from error
    opened = os.fstat(fd)
    if stat.S_ISREG(opened.st_mode) and opened.st_dev not in _kernels_own():
        if not is_journal(fd):
            return fd
        os.close(fd)
        raise journals_own(roots, place.real)
    os.close(fd)
    what = kind_of(opened) if not stat.S_ISREG(opened.st_mode) else "one of the kernel's own, which has no lasting content"
    raise ToolError(f"{roots.shown(place.real)} is {what}, not a file to be read", kind="wrong_kind")


def _kernels_own() -> tuple[int, ...]:
    """The devices of /proc and /sys: their files show this very program's memory and environment, and change it."""
    found = []
    for mount in ("/proc/self", "/sys/kernel"):
        with contextlib.suppress(OSError):
            found.append(os.stat(mount).st_dev)
    return tuple(found)
