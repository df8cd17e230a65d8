"""Session: a conversation's log, as an agent writes and reads it: one journal, shared with the runner whose calls are in it.

State: the number of the last record, what is folded from the log for the next request, and what was spent. Changed by `append`
(the agent's records) and `take` (the runner's, shown by its observers in the order in which the journal has them).
"""

import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, final

import anyio

from toolrunner.agent.drafts import DraftFile, DraftWriter, fitting
from toolrunner.agent.inbox import Message, still_queued
from toolrunner.agent.model import Spent
from toolrunner.effects import DURABLE_WAIT
from toolrunner.errors import ConfigError, JournalFailed
from toolrunner.history import Draft, Projector, closing_records
from toolrunner.journal import Durable, RawRecord, SqliteJournal
from toolrunner.memory import MemoryJournal
from toolrunner.records import AssistantAttempt, AssistantMessage, CutCalls, Journal, MarkerMode, Record

__all__ = ["Session"]

_logger = logging.getLogger("toolrunner")

Observer = Callable[[Record], object]


@final
class Session:
    """One conversation. Give its `journal` to the runner, and the session itself to the agent.

    Args:
        journal: where records are kept; in memory by default. Its owner closes it: the runner, as a rule.
        cut_calls: what becomes of whole calls in a response that was stopped. Fixed by the log's first turn.
        marker: whether the model is told of an interruption. Fixed in the same way.
        draft: the file for the reply that is being read; None: a kill loses it.
    """

    def __init__(
        self,
        journal: Journal | None = None,
        *,
        cut_calls: CutCalls = "omit",
        marker: MarkerMode = "user",
        draft: Path | None = None,
    ) -> None:
        _require(cut_calls, "cut_calls", ("omit", "answer"))
        _require(marker, "marker", ("user", "off"))
        self.journal: Journal = journal if journal is not None else MemoryJournal()
        self.cut_calls, self.marker = cut_calls, marker
        self.seq = 0
        """Number of the last record of the log."""
        self.spent = Spent()
        """What the conversation has used, earlier owners' turns included."""
        self._projector: Projector | None = None
        self._observers: tuple[Observer, ...] = ()
        self._skipped: deque[int] = deque()
        """Numbers of records that the journal took before ours and nobody has shown us yet."""
        self._pending: Awaitable[None] | None = None
        self._draft_file = DraftFile(draft) if draft is not None else None
        self._drafts: DraftWriter | None = None

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        session: str | None = None,
        cut_calls: CutCalls = "omit",
        marker: MarkerMode = "user",
        **options: Any,
    ) -> Self:
        """Open a journal on disk as its owner, or make it. `options` and what is raised are those of `SqliteJournal.open`."""
        return cls.on(SqliteJournal.open(path, session=session, **options), cut_calls=cut_calls, marker=marker)

    @classmethod
    def on(cls, journal: SqliteJournal, *, cut_calls: CutCalls = "omit", marker: MarkerMode = "user") -> Self:
        """The conversation in a journal that is open; its draft lies beside it, under the one name that every owner looks for."""
        return cls(journal, cut_calls=cut_calls, marker=marker, draft=journal.path.with_name(f"{journal.path.name}.draft"))

    # An agent begins and ends.

    async def begin(self, provider: str, model: str) -> list[Message]:
        """Read the log, close a turn that a dead owner left open, and fold the rest. Returns the messages that still wait.

        After the runner was entered: its recovery knows more of open calls than the fold does.

        Raises:
            ConfigError: the provider is unknown. JournalError: the log cannot be read, or does not take what is missing.
        """
        projector = Projector(provider, model)
        records = await self._read()
        draft = self._draft_file.read() if self._draft_file is not None else None
        for record in records:
            projector.add(record)
            self._count(record)
        self._projector = projector
        closing = closing_records(records, fitting(draft, records))
        if closing:
            self.append(*closing)
            await self.durable()
        if self._draft_file is not None:
            self._draft_file.remove()  # only now: what it says is in the log, or was no part of it
            self._drafts = DraftWriter(self._draft_file)
        return still_queued(records)

    def end(self) -> None:
        """No agent writes any more."""
        if self._drafts is not None:
            self._drafts.close()
            self._drafts = None

    async def _read(self) -> list[Record]:
        journal = self.journal
        if isinstance(journal, MemoryJournal):
            records = list(journal)
            self.seq = records[-1].seq if records else 0
            return records
        if not isinstance(journal, SqliteJournal):
            return []  # nothing but a journal of ours can be read back
        with self._in_time():
            while True:  # what the runner's other calls write meanwhile is part of it
                shown = self.seq
                await journal.flush()
                if shown == self.seq:
                    break
        with journal.reader() as reader:
            entries = list(reader)
        self.seq = entries[-1].seq if entries else 0
        unread = [entry.seq for entry in entries if isinstance(entry.record, RawRecord)]
        if unread:
            _logger.warning("%s: %d records cannot be read by this version and are left out", journal.path, len(unread))
        return [entry.record for entry in entries if not isinstance(entry.record, RawRecord)]

    # Records.

    def append(self, *records: Record) -> int:
        """Take records of the agent's, as one commit. Sync. Returns the number of the last; `durable` waits for them."""
        pending = self.journal.append(*records)
        self._pending = pending if pending is not None else self._pending
        if isinstance(pending, Durable) and pending.seq > 0:
            ours = pending.seq - len(records)
            # Somebody who is being shown the runner's records writes one of ours, so those in between are still to be shown.
            self._skipped += range(self.seq + 1, ours + 1)
            self.seq = max(self.seq, ours)
        numbered = [replace(record, seq=self.seq + number) for number, record in enumerate(records, start=1)]
        self.seq += len(numbered)
        last = self.seq
        self._fold(numbered)
        return last

    def take(self, record: Record) -> None:
        """A record of the runner's, which is in the journal already."""
        if record.transient:
            self._show(record)
            return
        if self._skipped:
            number = self._skipped.popleft()
        else:
            self.seq = number = self.seq + 1
        self._fold([replace(record, seq=number)])

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Hear of every record, the runner's too. Sync, must not block; what it raises is logged and dropped."""
        self._observers = (*self._observers, observer)

        def stop() -> None:
            self._observers = tuple(one for one in self._observers if one is not observer)

        return stop

    async def durable(self) -> None:
        """Wait until all that was appended is on disk. Raises `JournalError`: it is not, and what it precedes must not happen."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        with self._in_time():
            await pending

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """A disk that never answers is not waited for without end. Raises `JournalFailed`."""
        with anyio.move_on_after(DURABLE_WAIT) as bound:
            yield
        if bound.cancelled_caught:
            raise JournalFailed(getattr(self.journal, "path", ""), f"it did not take what was appended within {DURABLE_WAIT:g} s")

    def draft(self, source: Callable[[], Draft] | None) -> None:
        """Says what a kill should leave of the reply; None: nothing, it is in the log."""
        if self._drafts is not None:
            self._drafts.put(source)

    def messages(self) -> list[dict[str, Any]]:
        """The history, as the next request carries it. Raises `Unanswered`: a call has no result yet."""
        assert self._projector is not None
        return self._projector.messages()

    def _fold(self, numbered: Iterable[Record]) -> None:
        """All of a commit, before anybody is shown any of it: who is shown one may write the next."""
        records = tuple(numbered)
        for record in records:
            self._count(record)
            if self._projector is not None:
                self._projector.add(record)
        for record in records:
            self._show(record)

    def _count(self, record: Record) -> None:
        if isinstance(record, AssistantMessage | AssistantAttempt):
            self.spent += Spent.of(record.usage)

    def _show(self, record: Record) -> None:
        for observer in self._observers:
            try:
                observer(record)
            except Exception:
                _logger.exception("an observer raised at %s", record.type)


def _require(value: object, what: str, words: tuple[str, ...]) -> None:
    if value not in words:
        raise ConfigError(what, value, " or ".join(map(repr, words)))
