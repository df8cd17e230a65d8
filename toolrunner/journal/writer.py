"""Writer: the one thread that writes, and what waits for it.

State, changed under `_lock`: the records that wait for a commit, the waiters, and how far the disk is (`durable`). The connection
belongs to the thread alone from its start to its end. Records that nobody waits for ride along with the next commit, at the
latest after `RIDE`; so a commit, which costs a flush of the disk, is made when somebody needs it and takes all there is.
"""

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import final

from toolrunner.errors import JournalClosed, JournalError, JournalFailed
from toolrunner.journal.clocks import boottime
from toolrunner.journal.failures import is_busy, journal_error
from toolrunner.journal.rows import Row, insert
from toolrunner.journal.schema import reserve_wal
from toolrunner.journal.waiting import Happened, Sleeper, Until, Waiter, tell
from toolrunner.loops import Post
from toolrunner.records import Record

_logger = logging.getLogger("toolrunner")

RIDE = 0.05
"""Seconds until records that nobody waits for are written all the same: what `log --follow` lags behind, and a kill may cost."""

IDLE = 1.0
"""Seconds without a record until all of the -wal file is moved into the database; nobody waits for the disk then."""

CHECKPOINT_BYTES = 1024 * 1024
"""Bytes written to the -wal file, about, after which its pages are moved into the database although there is work. Then it is
written from its beginning again."""

RESERVE_AFTER = 16
"""Commits after which the -wal file is made as long as it will get, for a session that goes on: a flush of a file that has grown
takes twice as long, since its new length must be flushed as well."""

_COMMIT_BYTES = 16_384
"""What a commit writes besides the records, about: a page of the table, one or two of its indices."""

COMMIT_RECORDS = 2_048
"""Records of one commit at most; those behind wait for the next one, so that nobody waits for a whole backlog."""

PENDING_LIMIT = 1_000_000
"""Records that may wait for a disk that does not keep up. They lie in memory, and an append must neither block nor forget; with
one more the journal has failed, so that nothing is started any more."""


@final
class Writer:
    """One per owned journal. `encode` makes rows of records, in the thread; what it raises fails the journal."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        encode: Callable[[int, float, Record], Row],
        last_seq: int,
        chores: tuple[Callable[[], object], ...] = (),
    ) -> None:
        self._connection = connection
        self._path = path
        self._encode = encode
        self._chores = list(chores)
        """Done once, one by one, when there is nothing to write."""
        self._lock = threading.Lock()
        self._sleeper = Sleeper()
        self._pending: deque[tuple[int, float, Record]] = deque()
        self._waiters: list[Waiter] = []
        self._taken = last_seq
        self._wanted = 0
        """Somebody waits for the records up to this one."""
        self._commits = self._written_bytes = 0
        self._closing = False
        self._enders: list[Waiter] = []
        self._over = False
        self._is_dirty = True
        """The -wal file holds something that is not in the database."""
        self.durable = last_seq
        """The last record whose commit was flushed to the disk. Never goes back."""
        self.failure: JournalError | None = None
        """Why nothing more is written. Set once; a flush that failed is never tried again, since the kernel may have dropped
        what it could not write (https://lwn.net/Articles/752063/)."""
        self.thread = threading.Thread(target=self._live, name=f"journal {path.parent.name}", daemon=True)

    # Called by the owner, from any thread.

    def append(self, records: tuple[Record, ...]) -> int:
        """Take records, number them, and return the last number."""
        at = boottime()
        with self._lock:
            if self.failure is None and len(self._pending) + len(records) > PENDING_LIMIT:
                self._fail(JournalFailed(self._path, f"more than {PENDING_LIMIT} records wait for the disk"))
            for record in records:
                self._taken += 1
                if self.failure is None:
                    self._pending.append((self._taken, at, record))
            if self._sleeper.until is Until.ANYTHING:
                self._sleeper.wake()
            return self._taken

    def want(self, seq: int, happened: Happened, post: Post) -> None:
        """Have `happened` called through `post` when the record is durable, or never will be."""
        with self._lock:
            if self.durable >= seq or self.failure is not None:
                post(happened)
                return
            self._waiters.append(Waiter(seq, happened, post))
            if seq > self._wanted:
                self._wanted = seq
                self._sleeper.wake()

    def close(self) -> None:
        """Ask for the end: what is pending is written, then the file is closed. Does not wait; the thread's end is the answer."""
        with self._lock:
            self._closing = True
            self._sleeper.wake()

    def at_end(self, happened: Happened, post: Post) -> None:
        """Have `happened` called through `post` when the thread has let go of the file."""
        with self._lock:
            if self._over:
                post(happened)
            else:
                self._enders.append(Waiter(0, happened, post))

    @property
    def taken(self) -> int:
        """The number of the last record that was taken."""
        return self._taken

    # The thread.

    def _live(self) -> None:
        try:
            while (batch := self._next_batch()) is not None:
                self._commit(batch)
        except sqlite3.Error as error:
            self._give_up(journal_error(self._path, error))
        except Exception as error:
            _logger.exception("the writer of %s failed", self._path)
            self._give_up(JournalFailed(self._path, f"toolrunner failed: {error!r}"))
        finally:
            self._end()

    def _next_batch(self) -> list[tuple[int, float, Record]] | None:
        """Wait until there is something to write and a reason to write it now; None at the end."""
        has_ridden = False
        while True:
            with self._lock:
                if self.failure is not None:
                    return None
                if self._pending and (has_ridden or self._wanted > self.durable or self._closing):
                    return list(islice(self._pending, COMMIT_RECORDS))
                if self._closing:
                    return None
                is_idle = not self._pending
                self._sleeper.until = Until.ANYTHING if is_idle else Until.WANTED
            has_slept = not self._sleeper.sleep((IDLE if self._is_dirty else None) if is_idle else RIDE, self._lock)
            has_ridden = has_slept and not is_idle
            if has_slept and is_idle:
                self._rest()

    def _commit(self, batch: list[tuple[int, float, Record]]) -> None:
        rows = [self._encode(*one) for one in batch]
        while not self._written(rows):
            _logger.warning("%s is locked by another program; it is tried again", self._path)
        self._is_dirty = True
        with self._lock:
            if self.failure is None:  # else they were dropped meanwhile; these ones are on disk all the same
                for _ in batch:
                    self._pending.popleft()
            self.durable = batch[-1][0]
            ready = self._ready()
            if len(ready) > 1:
                # Measured, not derived (README of the benchmarks): told after the lock, 16 callers took twice as long.
                tell(ready)
                ready = []
        self._commits += 1
        self._written_bytes += _COMMIT_BYTES + sum([len(one.body) for one in rows])
        # One alone is told as the last thing before the next sleep, since the interpreter lock is needed at once where it wakes.
        tell(ready)
        if self._commits == RESERVE_AFTER or self._written_bytes > CHECKPOINT_BYTES:
            self._care_for_wal()

    def _written(self, rows: list[Row]) -> bool:
        """One commit, flushed when this returns True. False: another program has the file locked, so nothing was written."""
        try:
            insert(self._connection, rows)
        except sqlite3.Error as error:
            if not is_busy(error) or self._connection.in_transaction or self._closing:
                raise
            return False
        return True

    def _care_for_wal(self) -> None:
        """After those who waited for a commit were told."""
        if self._commits == RESERVE_AFTER:
            reserve_wal(self._connection)
        if self._written_bytes > CHECKPOINT_BYTES:
            self._written_bytes = 0
            self._checkpoint("PASSIVE")

    def _rest(self) -> None:
        """Nothing came for a while. The -wal file keeps its length, see `RESERVE_AFTER`, and nothing that counts."""
        self._written_bytes = 0
        self._is_dirty = self._checkpoint("RESTART")
        if self._chores:
            self._is_dirty = True  # so that the next one's turn comes
            self._chores.pop()()

    def _checkpoint(self, kind: str) -> bool:
        """Move the -wal file's pages into the database. True: somebody's reading kept it from being done."""
        try:
            busy = self._connection.execute(f"PRAGMA wal_checkpoint({kind})").fetchone()[0]
        except sqlite3.Error as error:
            if not is_busy(error):
                raise
            return True
        return bool(busy)

    def _give_up(self, failure: JournalError) -> None:
        with self._lock:
            self._fail(failure)

    def _fail(self, failure: JournalError) -> None:
        """Under the lock: nothing is written from here on, and who waits is told."""
        self.failure = self.failure or failure
        self._pending.clear()
        tell(self._ready())
        self._sleeper.wake()

    def _ready(self) -> list[Waiter]:
        """Under the lock: take out whoever waited for what is durable now, or never will be."""
        over = self.failure is not None
        ready = [one for one in self._waiters if over or one.seq <= self.durable]
        self._waiters = [] if len(ready) == len(self._waiters) else [one for one in self._waiters if one.seq > self.durable]
        return ready

    def _end(self) -> None:
        """Leave the file so that readers need no other: nothing in the -wal file, and no need of one."""
        try:
            if self.failure is None:
                self._connection.execute("PRAGMA busy_timeout = 0").fetchall()
                self._checkpoint("TRUNCATE")
                # In this mode a reader makes no file next to it. A reader that is connected forbids it; then it stays as it is.
                self._connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        except sqlite3.Error as error:
            _logger.debug("%s stays in WAL mode: %s", self._path, error)
        try:
            self._connection.close()
        except sqlite3.Error:
            _logger.exception("%s could not be closed", self._path)
        with self._lock:
            self._fail(JournalClosed(self._path))
            self._over = True
            tell(self._enders)
