"""What SQLite's failures mean to whoever has to mend them. No state."""

import contextlib
import errno
import os
import sqlite3
from pathlib import Path

from toolrunner.errors import JournalDamaged, JournalError, JournalFailed, JournalFull, JournalLocked, JournalReadOnly

BUSY_WAIT = 5.0
"""Seconds to wait for another program's lock: a backup or a browser's query is over by then."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What write(2) says when there is no room: full disk, quota, limit of the file's size."""

_PROBE = bytes(65_536)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another program has the lock, so that the same may work later."""
    return name_of(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def journal_error(path: Path, error: sqlite3.Error) -> JournalError:
    """The error of ours for one of SQLite's."""
    name = name_of(error)
    text = f"{error} ({name})" if name else str(error)
    if is_busy(error):
        return JournalLocked(path, BUSY_WAIT)
    if name == "SQLITE_FULL":
        return JournalFull(path, "no space is left")
    if name.startswith(("SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHM")) and (why := _no_room(path)) is not None:
        # SQLite tells ENOSPC from other errors of write(2), but not EFBIG and EDQUOT, and Python does not hand the number on. Of
        # the -shm file, which it makes long enough first, it tells nothing.
        return JournalFull(path, why)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return JournalReadOnly(path, f"it cannot be opened for writing: {text}")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return JournalDamaged(path, f"it is no journal, or damaged: {text}")
    return JournalFailed(path, f"it could not be written: {text}")


def name_of(error: sqlite3.Error) -> str:
    """SQLite's own name of its error, such as `SQLITE_BUSY`; empty where it gave none."""
    return getattr(error, "sqlite_errorname", None) or ""


def _no_room(path: Path) -> str | None:
    """Try what SQLite tried, next to its file and as far into it; returns what the kernel says, None if there is room."""
    sizes = [0]
    for name in (path, Path(f"{path}-wal")):
        with contextlib.suppress(OSError):
            sizes.append(name.stat().st_size)
    probe = path.with_name(f"{path.name}.probe-{os.getpid()}")
    try:
        file = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return error.strerror if error.errno in NO_ROOM else None
    try:
        # A write that reaches the limit may be a short one; the next one says why.
        at = max(sizes)
        at += os.pwrite(file, _PROBE, at)
        os.pwrite(file, _PROBE, at)
    except OSError as error:
        return error.strerror if error.errno in NO_ROOM else None
    finally:
        os.close(file)
        probe.unlink(missing_ok=True)
    return None
