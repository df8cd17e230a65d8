"""Putting a whole new content in the place of a file: it is the old one or the new one at any moment, whoever is killed when.

A temporary file in the same folder, flushed, then renamed over the name, then the folder flushed (rename(2), fsync(2)). While it
is written the temporary file is locked; one that nobody holds locked was left by a writer that was killed, and the next writer in
that folder removes it. No state: everything belongs to one call of `put`.
"""

import contextlib
import errno
import itertools
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from typing import final

from toolrunner.errors import ToolError

if sys.platform != "win32":
    import fcntl

TEMPORARY = re.compile(r"\.toolrunner-[0-9a-f]{16}\.tmp")
"""How temporary files are called: a leftover can be told from everything else, and nobody can guess the next one."""

LOOKED_AT = 4_096
"""Names of a folder that are looked through for leftovers: a folder with more is not worth the milliseconds at each write."""

ATTEMPTS = 8
"""Tries to make a temporary file. One is lost when a cleaning writer finds it in the microsecond before it is locked."""

_KEPT_XATTRS = ("user.", "system.posix_acl_access")
"""Extended attributes that stay with a file. Capabilities do not: the kernel takes them away at any write too."""


@final
class NotPut(ToolError):
    """The content was not put in place: the name has what it had."""


def same(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    """Whether two looks saw the same file with the same content."""
    return _stamp(one) == _stamp(other)


def _stamp(found: os.stat_result | None) -> tuple[int, ...] | None:
    return None if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def look(name: str, folder: int) -> os.stat_result | None:
    """What is there now, symlinks not followed; None for nothing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def put(name: str, folder: int, data: bytes, old: os.stat_result | None) -> None:
    """Make `data` the content of `name` in `folder`, which has `old` now (None: nothing).

    Mode bits, extended attributes and, as root, the owner are those of `old`; setuid and setgid are dropped, as at any write.

    Raises:
        OSError: nothing was put in place. NotPut: the same, because somebody else changed the file since `old`.
        NotFlushed: it is in place, and may not survive a power failure.
    """
    directory = os.open(
        ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder
    )  # one that can be flushed; `folder` cannot
    try:
        remove_leftovers(directory)
        with _temporary(directory, 0o666 if old is None else 0o600) as (temporary, fd):
            _write(fd, data)
            if old is not None:
                _take_over(fd, name, directory, old)
            os.fsync(fd)
            # The last look. Between it and the rename is a microsecond in which a foreign program's change would be lost;
            # programs that use the same file have to agree on a lock, which the calls of one runner do.
            if not same(look(name, directory), old):
                raise NotPut("was changed by somebody else meanwhile; read it again and repeat the change", kind="changed")
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        flush(directory)
    finally:
        os.close(directory)


@final
class NotFlushed(OSError):
    """The change was made and the disk did not confirm it."""


def flush(directory: int) -> None:
    """Have the names in a folder written to the disk. Raises NotFlushed."""
    try:
        os.fsync(directory)
    except OSError as error:
        raise NotFlushed(error.errno, error.strerror) from error


def remove(name: str, folder: int) -> None:
    """Take a file away, for good. Raises OSError, NotFlushed."""
    directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.unlink(name, dir_fd=directory)
        flush(directory)
    finally:
        os.close(directory)


@contextlib.contextmanager
def _temporary(directory: int, mode: int) -> Iterator[tuple[str, int]]:
    """A new file, locked; removed at the end unless it was renamed."""
    name, fd = _locked(directory, mode)
    try:
        yield name, fd
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)
        os.close(fd)  # last: the lock says that somebody still answers for the name


def _locked(directory: int, mode: int) -> tuple[str, int]:
    for _ in range(ATTEMPTS):
        name = f".toolrunner-{secrets.token_hex(8)}.tmp"
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=directory)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_nlink:
                return name, fd
        except BlockingIOError:
            pass
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
    raise OSError(errno.EBUSY, "temporary files are taken away as fast as they are made")


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _take_over(fd: int, name: str, directory: int, old: os.stat_result) -> None:
    """Give the new file what the old one has beside its content."""
    new = os.fstat(fd)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        # Only root may give files away; a group of ours may be kept.
        owner = old.st_uid if os.geteuid() == 0 else -1
        with contextlib.suppress(PermissionError):
            os.fchown(fd, owner, old.st_gid)
    os.fchmod(fd, stat.S_IMODE(old.st_mode) & 0o1777)
    if hasattr(os, "listxattr"):
        _copy_xattrs(fd, name, directory)


def _copy_xattrs(fd: int, name: str, directory: int) -> None:
    try:
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError:  # write-only for us, or gone, which the last look will find
        return
    try:
        for attribute in os.listxattr(source):
            if attribute.startswith(_KEPT_XATTRS):
                with contextlib.suppress(OSError):
                    os.setxattr(fd, attribute, os.getxattr(source, attribute))
    except OSError:  # ENOTSUP: this file system has none
        pass
    finally:
        os.close(source)


def remove_leftovers(directory: int) -> None:
    """Remove the temporary files of writers that are no more."""
    with os.scandir(directory) as entries:
        names = [one.name for one in itertools.islice(entries, LOOKED_AT) if TEMPORARY.fullmatch(one.name)]
    for name in names:
        with contextlib.suppress(OSError):
            _remove_leftover(name, directory)


def _remove_leftover(name: str, directory: int) -> None:
    found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        return
    fd = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=directory)
    finally:
        os.close(fd)
