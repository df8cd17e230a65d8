"""Carries what is in a layer over to its lower folder: each path by itself, in place of exactly what the call saw there.

A path that somebody else changed since the call began is left as it is, and told. Every step walks from the lower folder down by
descriptors that follow no link (openat(2), O_NOFOLLOW), so a folder that is swapped for a link leads nowhere. Each step can be
done again: after a crash the same function finishes what it began.
"""

import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from toolrunner.facts import ChangeKind
from toolrunner.sandbox.overlay.changes import BLOCK, LayerChange
from toolrunner.sandbox.overlay.layer import Layer
from toolrunner.sandbox.view import is_within

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

PERMISSIONS = 0o777
"""Of a file's mode what is carried over: set-user-id and the like are not."""


def commit(layer: Layer, wanted: Iterable[LayerChange]) -> tuple[str, ...]:
    """Carry these over; returns the paths that were left: shut ones, and conflicts. Raises OSError with the rest not done."""
    planned = tuple(wanted)
    conflicts = {change.path for change in planned if _is_shut(layer, change) or _is_conflict(layer, change)}
    touched: set[str] = set()
    # Deletions last and from the deepest up, so that what replaces a folder finds its place.
    for change in sorted(planned, key=_order):
        if change.path in conflicts or any(change.path.startswith(each + os.sep) for each in conflicts):
            conflicts.add(change.path)
            continue
        with _parent(layer.lower, change.path) as (folder, name):
            _carry(layer, change, folder, name)
        touched.add(os.path.dirname(change.path))
    for path in touched:
        with _folder(layer.lower, path) as folder:
            os.fsync(folder)
    return tuple(sorted(conflicts))


def _order(change: LayerChange) -> tuple[bool, str]:
    return change.kind is ChangeKind.DELETED, change.path


def _is_shut(layer: Layer, change: LayerChange) -> bool:
    """Whether it is at a path that is not to be written, or would take the folder of one away or replace it."""
    takes_along = change.kind is ChangeKind.DELETED or not change.is_folder
    return any(is_within(change.path, path) or (takes_along and is_within(path, change.path)) for path in layer.shut)


def _is_conflict(layer: Layer, change: LayerChange) -> bool:
    """Whether the lower path is no more what it was when the call began."""
    path = os.path.join(layer.lower, change.path)
    try:
        facts = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        # A copy is of something that was there under this name, or was moved here by the call. In the first case somebody took
        # it away since, which shows in its folder. (What is to go and is gone already is fine.)
        return change.is_copy and change.kind is not ChangeKind.DELETED and _was_touched(os.path.dirname(path), layer)
    if facts.st_ctime_ns >= layer.began:
        return True
    if change.kind is ChangeKind.DELETED and stat.S_ISDIR(facts.st_mode):
        return any(os.lstat(below).st_ctime_ns >= layer.began for below in _everything(path))
    return False


def _was_touched(folder: str, layer: Layer) -> bool:
    try:
        return os.lstat(folder).st_ctime_ns >= layer.began
    except OSError:  # it is new as well
        return False


def _everything(path: str) -> Iterator[str]:
    for folder, folders, files in os.walk(path):
        yield from (os.path.join(folder, name) for name in (*folders, *files))


def _carry(layer: Layer, change: LayerChange, folder: int, name: str) -> None:
    if change.kind is ChangeKind.DELETED:
        _remove(folder, name)
        return
    source = os.path.join(layer.upper, change.path)
    facts = os.lstat(source)
    if stat.S_ISDIR(facts.st_mode):
        _make_folder(folder, name, facts, layer)
    elif stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
        _replace(source, facts, folder, name, layer)
    # Devices, sockets and pipes are nothing that a call should leave behind.


def _remove(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(facts.st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)


def _make_folder(folder: int, name: str, facts: os.stat_result, layer: Layer) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=folder)
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            os.mkdir(name, 0o700, dir_fd=folder)
    own = os.open(name, FOLDER, dir_fd=folder)
    try:
        _give(own, facts, layer)
    finally:
        os.close(own)


def _replace(source: str, facts: os.stat_result, folder: int, name: str, layer: Layer) -> None:
    """Beside its place under another name, then by rename(2): nobody ever sees half of it."""
    beside = f".{secrets.token_hex(8)}.toolrunner"
    try:
        if stat.S_ISLNK(facts.st_mode):
            os.symlink(os.readlink(source), beside, dir_fd=folder)
            if layer.user is not None:
                os.chown(beside, *layer.user, dir_fd=folder, follow_symlinks=False)
        else:
            _copy(source, facts, folder, beside, layer)
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                shutil.rmtree(name, dir_fd=folder)
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise


def _copy(source: str, facts: os.stat_result, folder: int, name: str, layer: Layer) -> None:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        writing = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            while block := os.read(reading, BLOCK):
                rest = memoryview(block)
                while rest:
                    rest = rest[os.write(writing, rest) :]
            _give(writing, facts, layer)
            os.utime(writing, ns=(facts.st_atime_ns, facts.st_mtime_ns))
            os.fsync(writing)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _give(fd: int, facts: os.stat_result, layer: Layer) -> None:
    if layer.user is not None:
        os.fchown(fd, *layer.user)
    os.fchmod(fd, facts.st_mode & PERMISSIONS)


@contextmanager
def _parent(lower: str, path: str) -> Iterator[tuple[int, str]]:
    with _folder(lower, os.path.dirname(path)) as folder:
        yield folder, os.path.basename(path)


@contextmanager
def _folder(lower: str, path: str) -> Iterator[int]:
    """A folder below the lower one, step by step, following no link."""
    at = os.open(lower, FOLDER)
    try:
        for part in filter(None, path.split(os.sep)):
            deeper = os.open(part, FOLDER, dir_fd=at)
            os.close(at)
            at = deeper
        yield at
    finally:
        os.close(at)
