"""A read-only connection to a journal, whatever state it was left in, that makes no file. No state.

Owned or left by a killed owner, a journal has its -wal and -shm files, and they are used. Closed by its owner it is in rollback
mode and needs none. It is in WAL mode without them when its owner's writes had failed, or when a reader was the last to let go:
then all of it is in the database, and nobody writes.
"""

import sqlite3
from pathlib import Path
from typing import NamedTuple, final
from urllib.parse import quote

from toolrunner.errors import JournalError, JournalMissing, JournalUnreadable
from toolrunner.journal.failures import BUSY_WAIT, is_busy, journal_error, name_of

_WRITE_VERSION = 18
"""Offset of the byte that says WAL (https://www.sqlite.org/fileformat.html, "File format version numbers")."""
_WAL = 2


@final
class Look(NamedTuple):
    """`is_fixed`: the connection takes the file for one that never changes; it must be made anew once somebody writes."""

    connection: sqlite3.Connection
    is_fixed: bool


def wal_of(path: Path) -> Path:
    """The write-ahead log's file."""
    return path.with_name(f"{path.name}-wal")


def look_into(path: Path) -> Look:
    """Connect. Raises `JournalMissing`, `JournalUnreadable`; what the database is, is not looked at."""
    if not path.exists():
        raise JournalMissing(path)
    # A read-only connection, too, would make a -wal file for a database in WAL mode, and a -shm file unless told otherwise.
    is_fixed = not wal_of(path).exists() and _says_wal(path)
    mode = "immutable=1" if is_fixed else "mode=ro&readonly_shm=1"
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, timeout=BUSY_WAIT, isolation_level=None)
    except sqlite3.Error as error:
        raise unreadable(path, error) from error
    return Look(connection, is_fixed)


def _says_wal(path: Path) -> bool:
    # The one time that anybody but SQLite opens the database. Closing it drops this process's POSIX locks on it (fcntl(2)),
    # and there are none: whoever has it open in WAL mode has a -wal file; in the other mode locks are held during a query only.
    try:
        with path.open("rb", buffering=0) as file:
            head = file.read(_WRITE_VERSION + 1)
    except OSError as error:
        raise JournalUnreadable(path, error.strerror or str(error)) from error
    return len(head) > _WRITE_VERSION and head[_WRITE_VERSION] == _WAL


def is_half_written(error: sqlite3.Error) -> bool:
    """Whether the index of the log was not whole at that moment: its owner was killed in the middle, or is just writing it.

    A reader that may not write it looks again under a lock only to see whether somebody writes; one that is done by then leaves
    it with this answer (walIndexReadHdr in https://sqlite.org/src/file/src/wal.c).
    """
    return name_of(error) == "SQLITE_READONLY_RECOVERY"


def unreadable(path: Path, error: sqlite3.Error) -> JournalError:
    """The error of ours for a query that failed."""
    name = name_of(error)
    if is_busy(error) or name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or isinstance(error, sqlite3.ProgrammingError):
        return journal_error(path, error)
    return JournalUnreadable(path, f"{error} ({name})")
