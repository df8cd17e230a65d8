"""JournalReader: looks into a journal, whoever owns it and whether anybody does. Writes nothing and makes no file.

State: one read-only connection, and SQLite's number of the last state seen. Each question is one short SELECT: a transaction that
is held would keep the owner from emptying its -wal file.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

from toolrunner.errors import JournalDamaged, JournalTooNew
from toolrunner.facts import ProcessIdentity
from toolrunner.journal.clocks import Opening
from toolrunner.journal.codec import RawRecord, from_json
from toolrunner.journal.looking import is_half_written, look_into, unreadable, wal_of
from toolrunner.journal.places import Place, named_place
from toolrunner.journal.schema import APPLICATION_ID, SCHEMA_VERSION
from toolrunner.journal.secrets import without_plain_digests
from toolrunner.records import Record

PAGE = 1_000
"""Records of one SELECT, unless told otherwise: some milliseconds."""

PAUSES = (0.0, *[0.001] * 19, None)
"""Seconds between tries to read while the owner is writing the first words of the log's index, which takes it microseconds. If
they are still not whole after all of them, no owner lives that would complete them."""

_LAST = "\U0010ffff"
"""Sorts behind every text that begins the same way."""


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """One record of a journal and what the journal knows of it.

    `boottime`: when it was appended, in seconds of CLOCK_BOOTTIME of its opening's boot. `altered`: something of it was masked or
    cut when it was written, so its arguments may not be those that were given.
    """

    seq: int
    boottime: float
    altered: bool
    record: Record | RawRecord


@final
class JournalReader:
    """Opens for reading; use it in one thread, with `with`.

    Raises:
        JournalMissing, JournalUnreadable, JournalTooNew, JournalDamaged, JournalLocked: here, or by a later question.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._place = named_place(path)
        self._look = look_into(self._place.path)
        self._state = -1
        try:
            self._require_ours()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._look.connection.close()

    @property
    def path(self) -> Path:
        """The database file."""
        return self._place.path

    @property
    def place(self) -> Place:
        """It and its lock file."""
        return self._place

    # Records.

    def since(self, seq: int = 0, limit: int = PAGE) -> tuple[Entry, ...]:
        """Up to `limit` records behind number `seq`, in order."""
        return self._entries("seq > ? ORDER BY seq LIMIT ?", seq, limit)

    def __iter__(self) -> Iterator[Entry]:
        """All records there are, page by page; what is written meanwhile comes too."""
        seq = 0
        while page := self.since(seq):
            yield from page
            seq = page[-1].seq

    def of_run(self, run_id: str) -> tuple[Entry, ...]:
        """All records of one call."""
        return self._entries("run_id = ? ORDER BY seq", run_id)

    def of_type(self, *types: str) -> tuple[Entry, ...]:
        """All records of these types."""
        places = ", ".join("?" * len(types))
        return self._entries(f"seq IN (SELECT seq FROM records WHERE type IN ({places})) ORDER BY seq", *types)  # noqa: S608

    def made_in_bodies(self) -> tuple[Entry, ...]:
        """The `call/recorded` of calls that were made in the bodies of others. (Some of others too: it is told by the text.)"""
        return self._entries(
            "seq IN (SELECT seq FROM records WHERE type = 'call/recorded') AND body LIKE '%\"parent_run_id\":\"%' ORDER BY seq"
        )

    def of_key(self, key: str) -> tuple[Entry, ...]:
        """The `call/recorded` of the calls that brought this idempotency key."""
        return self._entries("key = ? ORDER BY seq", key)

    def keys(self) -> dict[str, tuple[str, ...]]:
        """Each idempotency key, and the calls that brought it, in order."""
        found: dict[str, tuple[str, ...]] = {}
        for key, run_id in self._rows("SELECT key, run_id FROM records WHERE key IS NOT NULL ORDER BY seq"):
            found[key] = (*found.get(key, ()), run_id)
        return found

    def unsettled(self) -> tuple[str, ...]:
        """Calls that were recorded and never settled, in order."""
        return tuple(
            run_id
            for (run_id,) in self._rows(
                "SELECT run_id FROM records WHERE seq IN (SELECT min(seq) FROM records WHERE type = 'call/recorded'"
                " AND run_id NOT IN (SELECT run_id FROM records WHERE type = 'call/settled') GROUP BY run_id) ORDER BY seq"
            )
        )

    def reconcilable(self) -> tuple[str, ...]:
        """Calls that were dispatched with a tool that declares `reconcile`."""
        rows = self._rows(
            "SELECT DISTINCT run_id FROM records WHERE type = 'call/dispatched' AND body LIKE '%\"reconciles\":true%'"
        )
        return tuple(run_id for (run_id,) in rows)

    def find(self, prefix: str, limit: int = 20) -> tuple[tuple[str, str | None], ...]:
        """Calls (run_id, call_id) one of whose ids begins with `prefix`, in order; an id that fits exactly comes alone."""
        query = "SELECT DISTINCT run_id, call_id FROM records WHERE type = 'call/recorded' AND {} ORDER BY seq LIMIT ?"
        exact = self._rows(query.format("(run_id = ? OR call_id = ?)"), prefix, prefix, limit)
        if exact:
            return tuple(exact)
        both = query.format("(run_id BETWEEN ? AND ? OR call_id BETWEEN ? AND ?)")
        return tuple(self._rows(both, prefix, prefix + _LAST, prefix, prefix + _LAST, limit))

    def last_seq(self) -> int:
        """The number of the last record, 0 if there is none."""
        return int(self._rows("SELECT ifnull(max(seq), 0) FROM records")[0][0])

    def bodies(self) -> Iterator[tuple[int, float, str]]:
        """(seq, boottime, JSON text) of all records, as they lie there."""
        seq = 0
        while page := self._rows("SELECT seq, boottime, body FROM records WHERE seq > ? ORDER BY seq LIMIT ?", seq, PAGE):
            yield from page
            seq = page[-1][0]

    # The journal itself.

    def openings(self) -> tuple[Opening, ...]:
        """Who owned it, from when and from which record on."""
        rows = self._rows(
            "SELECT number, first_seq, opened_at, boottime, host, pid, starttime, boot_id, pid_namespace FROM openings"
            " ORDER BY number"
        )
        return tuple(
            Opening(number, first_seq, datetime.fromisoformat(at), boottime, host, ProcessIdentity(*owner))
            for number, first_seq, at, boottime, host, *owner in rows
        )

    @property
    def session(self) -> str | None:
        """The session it was made for."""
        rows = self._rows("SELECT value FROM meta WHERE name = 'session'")
        return rows[0][0] if rows else None

    def keyed(self, text: str) -> str:
        """A text with digests of arguments as it is written of a call with secrets: to be looked up."""
        return without_plain_digests(self._rows("SELECT value FROM meta WHERE name = 'secret'")[0][0], text)

    def integrity(self) -> tuple[str, ...]:
        """What SQLite finds wrong with the file; reads all of it."""
        lines = [line for (line,) in self._rows("PRAGMA integrity_check")]
        return () if lines == ["ok"] else tuple(lines)

    def changed(self) -> bool:
        """Whether something was written since the last time that this was asked (True the first time). Cheap, for polling."""
        before, self._state = self._state, int(self._rows("PRAGMA data_version")[0][0])
        return before != self._state

    # How it is read.

    def _entries(self, condition: str, *values: Any) -> tuple[Entry, ...]:
        rows = self._rows(f"SELECT seq, boottime, altered, type, v, run_id, body FROM records WHERE {condition}", *values)  # noqa: S608
        return tuple(Entry(seq, at, bool(altered), from_json(seq, *rest)) for seq, at, altered, *rest in rows)

    def _rows(self, query: str, *values: Any) -> list[Any]:
        if self._look.is_fixed and wal_of(self.path).exists():  # it has an owner again
            self.close()
            self._look = look_into(self.path)
        for pause in PAUSES:
            try:
                return self._look.connection.execute(query, values).fetchall()
            except sqlite3.Error as error:
                if pause is None or not is_half_written(error):
                    raise unreadable(self.path, error) from error
            time.sleep(pause)
        raise AssertionError  # the last pause is None

    def _require_ours(self) -> None:
        version = int(self._rows("PRAGMA user_version")[0][0])
        if int(self._rows("PRAGMA application_id")[0][0]) != APPLICATION_ID:
            raise JournalDamaged(self.path, "it is no journal of toolrunner")
        if version > SCHEMA_VERSION:
            raise JournalTooNew(self.path, version, SCHEMA_VERSION)
