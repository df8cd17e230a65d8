"""SqliteJournal: records on disk, owned by one process, in the order in which they became true.

State: the writer's (see there), and whether this process is a forked child of the one that opened it. A child neither writes nor
closes anything: the file is its parent's.
"""

import ctypes
import os
import secrets
import sqlite3
import weakref
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, final

import anyio

from toolrunner.errors import ConfigError, JournalError, JournalForked
from toolrunner.journal.clocks import boottime, this_host, this_process
from toolrunner.journal.failures import journal_error
from toolrunner.journal.filesystems import require_local
from toolrunner.journal.ownership import OwnerLock
from toolrunner.journal.places import Place, named_place, new_session, prepare, session_place
from toolrunner.journal.reader import JournalReader
from toolrunner.journal.rows import row
from toolrunner.journal.schema import connect, make_ready
from toolrunner.journal.writer import Writer
from toolrunner.loops import Post, native_loop, poster
from toolrunner.records import Record

_living: "weakref.WeakSet[SqliteJournal]" = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    for journal in _living:
        journal._forked = True  # noqa: SLF001
        # Never closed in this process, not even by the interpreter's end: closing a connection may empty the -wal file that the
        # parent is writing.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(journal._connection))  # noqa: SLF001


os.register_at_fork(after_in_child=_leave_to_the_parent)


@final
class Durable:
    """What `append` gives to wait for. It need not be awaited; awaited, it raises `JournalError` if the record was not kept."""

    __slots__ = ("_journal", "seq")

    def __init__(self, journal: "SqliteJournal", seq: int) -> None:
        self._journal = journal
        self.seq = seq

    def __await__(self) -> Generator[Any, Any, None]:
        return self._journal.wait_durable(self.seq).__await__()


@final
class SqliteJournal:
    """A journal on disk. Made by `open`; give it to one `Runner(journal=...)`, which closes it."""

    def __init__(self, place: Place, lock: OwnerLock, connection: sqlite3.Connection, last_seq: int) -> None:
        self._place = place
        self._lock = lock
        self._connection = connection
        self._forked = False
        self._post: tuple[Any, Post] | None = None
        self._writer = Writer(connection, place.path, row, last_seq)
        self._writer.thread.start()
        _living.add(self)

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None = None, *, session: str | None = None) -> Self:
        """Open a journal as its owner, or make it: the file `path`, or that of the session `session`, or of a fresh session.

        Sync; takes a few flushes of the disk. When it returns, a record of this opening has been written, so the disk takes them.

        Raises:
            ConfigError: both are given, or the session's name is none.
            JournalError: it cannot be used, and one of its classes says why: `JournalOwned`, `JournalLocked`, `JournalFull`,
                `JournalReadOnly`, `JournalNotLocal`, `JournalNoWal`, `JournalTooNew`, `JournalDamaged`, `JournalFailed`.
        """
        if path is not None and session is not None:
            raise ConfigError("session", session, "None where a path is given")
        place = named_place(path) if path is not None else session_place(session if session is not None else new_session())
        prepare(place)
        require_local(place.path, place.path.parent)
        lock = OwnerLock.take(place)
        try:
            connection, last_seq = _opened(place)
        except BaseException:
            lock.release()
            raise
        return cls(place, lock, connection, last_seq)

    # The Journal protocol.

    def append(self, *records: Record) -> Durable | None:
        """Take records in this order. Never blocks: they wait in memory until the disk has taken those before them.

        Whoever awaits what is returned goes on when they are on disk. Should a million wait, because the disk does not keep up,
        the journal has failed. Transient records are not kept.
        """
        kept = records if not any(record.transient for record in records) else tuple(one for one in records if not one.transient)
        if not kept:
            return None
        return Durable(self, 0 if self._forked else self._writer.append(kept))

    @property
    def error(self) -> str | None:
        """Why nothing more can be written, or None."""
        failure = self.failure
        return failure.problem if failure is not None else None

    @property
    def failure(self) -> JournalError | None:
        """The same as an exception, which is what those who wait get."""
        return JournalForked(self.path) if self._forked else self._writer.failure

    async def wait_durable(self, seq: int) -> None:
        """Wait until the record of this number is on disk. Raises `JournalError` if it never will be."""
        if not self._forked and self._writer.durable < seq and self._writer.failure is None:
            happened = anyio.Event()
            self._writer.want(seq, happened.set, self._poster())
            await happened.wait()
        failure = self.failure
        if failure is not None and (self._forked or self._writer.durable < seq):
            raise failure

    async def flush(self) -> None:
        """Wait until all that was appended so far is on disk. Raises `JournalError`."""
        await self.wait_durable(self._writer.taken)

    async def aclose(self) -> None:
        """Write what is pending, and let go of file and lock. Raises nothing: `error` says whether all of it was written."""
        if self._forked:
            return
        self._writer.close()
        ended = anyio.Event()
        self._writer.at_end(ended.set, self._poster())
        await ended.wait()
        self._writer.thread.join()  # has told its end as the last thing it did
        self._lock.release()

    def close(self) -> None:
        """As `aclose`, for those who have no event loop; blocks."""
        if not self._forked:
            self._writer.close()
            self._writer.thread.join()
            self._lock.release()

    def _poster(self) -> Post:
        native = native_loop()
        if self._post is None or self._post[0] is not native:
            self._post = (native, poster())
        return self._post[1]

    # What the owner reads.

    @property
    def path(self) -> Path:
        """The database file."""
        return self._place.path

    @property
    def session(self) -> str | None:
        """The session it belongs to; None for a file that was named directly."""
        return self._place.session

    def reader(self) -> JournalReader:
        """A reader of the file; it sees what is committed. Close it."""
        return JournalReader(self.path)


def _opened(place: Place) -> tuple[sqlite3.Connection, int]:
    """The connection, ready to write, and the number of the last record. The first commit has been made."""
    try:
        connection = connect(place.path)
        try:
            make_ready(connection, place.path, place.session, secrets.token_bytes(32))
            return connection, _note_opening(connection)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise journal_error(place.path, error) from error


def _note_opening(connection: sqlite3.Connection) -> int:
    owner = this_process()
    last = int(connection.execute("SELECT ifnull(max(seq), 0) FROM records").fetchone()[0])
    connection.execute(
        "INSERT INTO openings VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            last + 1,
            datetime.now(UTC).isoformat(),
            boottime(),
            this_host(),
            owner.pid,
            owner.starttime,
            owner.boot_id,
            owner.pid_namespace,
        ),
    )
    return last
