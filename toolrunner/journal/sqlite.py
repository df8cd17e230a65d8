"""SqliteJournal: records on disk, owned by one process, in the order in which they became true.

State: the writer's (see there), and whether this process is a forked child of the one that opened it. A child neither writes nor
closes anything: the file is its parent's.
"""

import ctypes
import os
import weakref
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Self, final

from toolrunner.errors import ConfigError, JournalError, JournalForked
from toolrunner.journal.filesystems import require_local
from toolrunner.journal.opening import Opened, open_database
from toolrunner.journal.own import living
from toolrunner.journal.ownership import OwnerLock
from toolrunner.journal.places import Place, named_place, new_session, prepare, session_place
from toolrunner.journal.privacy import OUTPUT_LIMIT, Privacy, Redact
from toolrunner.journal.reader import JournalReader
from toolrunner.journal.rows import Row, row
from toolrunner.journal.sessions import Retention, retire
from toolrunner.journal.waiting import waiting
from toolrunner.journal.writer import Writer
from toolrunner.loops import Post, native_loop, poster
from toolrunner.records import Record

KEEP = Retention()
"""Thirty days and a gibibyte."""

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

    def __init__(self, place: Place, lock: OwnerLock, opened: Opened, privacy: Privacy, retention: Retention | None) -> None:
        self._place = place
        self._lock = lock
        self._connection = opened.connection
        self._forked = False
        self._loop: Any = None
        self._post: Post | None = None
        self._privacy = privacy
        chores = (lambda: retire(retention),) if retention is not None else ()
        self._writer = Writer(opened.connection, place.path, self._row, opened.last_seq, chores)
        self._writer.thread.start()
        _living.add(self)
        living.add(self)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        session: str | None = None,
        redact: Redact | None = None,
        retention: Retention | None = KEEP,
        output_limit: int = OUTPUT_LIMIT,
    ) -> Self:
        """Open a journal as its owner, or make it: the file `path`, or that of the session `session`, or of a fresh session.

        Sync; takes a few flushes of the disk. When it returns, this opening has been noted in the file, so the disk takes
        records.

        Args:
            path: the database file, or its folder.
            session: a name; the file lies in the state folder (XDG_STATE_HOME).
            redact: given each text that a model, tool or person gave; what it returns is written. Called in the writer's thread.
            retention: which sessions are deleted, by and by, while this one is open; None deletes none.
            output_limit: characters of one text of an output that are written.

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
            opened = open_database(place)
        except BaseException:
            lock.release()
            raise
        return cls(place, lock, opened, Privacy(opened.secret, redact, output_limit), retention if path is None else None)

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
            post = self._poster()
            happened, wait = waiting(self._loop)
            self._writer.want(seq, happened, post)
            await wait
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
        post = self._poster()
        ended, wait = waiting(self._loop)
        self._writer.at_end(ended, post)
        await wait
        self._writer.thread.join()  # has told its end as the last thing it did
        self._let_go()

    def close(self) -> None:
        """As `aclose`, for those who have no event loop; blocks."""
        if not self._forked:
            self._writer.close()
            self._writer.thread.join()
            self._let_go()

    def _let_go(self) -> None:
        self._lock.release()
        living.discard(self)

    def _poster(self) -> Post:
        """The way to the running loop, which is `_loop` then."""
        native = native_loop()
        if self._post is None or self._loop is not native:
            self._loop, self._post = native, poster()
        return self._post

    def _row(self, seq: int, at: float, record: Record) -> Row:
        body, altered = self._privacy.body(record)
        return row(seq, at, record, body, altered=altered)

    # What the owner knows and reads.

    def know_tool(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Told by the runner of each tool before a call of it: the JSON schema of its arguments says what of them is secret."""
        self._privacy.know(name, parameters)

    def masked(self, name: str, arguments: Any) -> Any:
        """A tool's arguments as they are written here, to be compared with those of records."""
        return self._privacy.masked(name, arguments)

    @property
    def place(self) -> Place:
        """Its files."""
        return self._place

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
