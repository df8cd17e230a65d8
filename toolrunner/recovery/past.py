"""Past: what a journal on disk knows, read only as far as a question needs. An open of a long session must not read all of it.

State: the reader; `PastCalls` is asked on the runner's loop, for single calls by an index. Two questions read more: which calls
are in doubt (those whose tools declare `reconcile`), and, once, which call took which key of arguments (all `call/decided`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from toolrunner.journal import Entry, JournalReader, Opening, RawRecord
from toolrunner.journal.clocks import this_host
from toolrunner.journal.doubts import in_doubt
from toolrunner.pipeline.idempotency import CLAIMED_BY, Claim
from toolrunner.records import CallDecided, CallDispatched, CallRecorded, CallSettled, Record
from toolrunner.recovery.stories import Stories, read_stories
from toolrunner.results import ToolResult


@final
@dataclass(frozen=True, slots=True)
class Past:
    """Some of a journal's stories, and who wrote them. `altered`: run ids of which something was masked or cut when written."""

    stories: Stories
    openings: tuple[Opening, ...] = ()
    altered: frozenset[str] = frozenset()

    @property
    def same_host(self) -> bool:
        """Whether all of it was written on this machine, as far as its name tells."""
        return all(one.host == this_host() for one in self.openings)

    def boot_of(self, seq: int) -> str:
        """The boot in which this record was written; empty where nobody says."""
        boots = [one.owner.boot_id for one in self.openings if one.first_seq <= seq]
        return boots[-1] if boots else ""


def read_open(reader: JournalReader) -> Past:
    """What matters for recovery: the calls without a result and those made in their bodies, all jobs, and the last record.

    Not everything since the first open call: one that hung all day would have the whole day read.
    """
    found = {entry.seq: entry for entry in reader.of_type("job/started", "job/ended")}
    unsettled = reader.unsettled()
    for run_id in unsettled:
        found |= {entry.seq: entry for entry in reader.of_run(run_id)}
    if any(isinstance(entry.record, CallDispatched) for entry in found.values()):
        for run_id in _made_in(set(unsettled), reader):
            found |= {entry.seq: entry for entry in reader.of_run(run_id)}
    found |= {entry.seq: entry for entry in reader.since(reader.last_seq() - 1)}
    return _past((found[seq] for seq in sorted(found)), reader.openings())


def _made_in(open_runs: set[str], reader: JournalReader) -> list[str]:
    """Calls that have a result and were made in the bodies of these, at any depth. A parent is recorded before its child."""
    family, made = set(open_runs), list[str]()
    for entry in reader.made_in_bodies():
        record = entry.record
        if isinstance(record, CallRecorded) and record.parent_run_id in family and record.run_id not in family:
            family.add(record.run_id)
            made.append(record.run_id)
    return made


def read_all(reader: JournalReader) -> Past:
    """The whole journal."""
    return _past(reader, reader.openings())


def _past(entries: Iterable[Entry], openings: Sequence[Opening]) -> Past:
    records, altered, unread = list[Record](), set[str](), set[str]()
    for entry in entries:
        if entry.altered:
            altered.add(entry.record.run_id)
        if isinstance(entry.record, RawRecord):
            # Written by a later version, or damaged. What it says of its call is not guessed: it is left to who can read it.
            unread.add(entry.record.run_id)
        else:
            records.append(entry.record)
    stories = read_stories(records)
    for run_id in unread:
        stories.by_run.pop(run_id, None)
    return Past(stories, tuple(openings), frozenset(altered))


@final
class PastCalls:
    """Single calls of a journal, looked up when somebody asks."""

    def __init__(self, reader: JournalReader) -> None:
        self._reader = reader
        self._openings = reader.openings()
        self._claims: dict[str, list[str]] | None = None
        """Keys made of arguments -> the calls that took them; read when the first such key is asked for."""

    def result(self, run_id: str) -> ToolResult | None:
        """The settled result of a call, of any owner."""
        found = [entry.record for entry in self._reader.of_run(run_id) if isinstance(entry.record, CallSettled)]
        return found[0].result if found else None

    def in_doubt(self) -> Iterator[ToolResult]:
        """The results of calls in doubt whose tools declared that they can find out."""
        for run_id in self._reader.reconcilable():
            entries = self._reader.of_run(run_id)
            if in_doubt(entry.record for entry in entries):
                yield from (entry.record.result for entry in entries if isinstance(entry.record, CallSettled))

    def with_key(self, key: str) -> Iterator[Past]:
        """Calls that brought an idempotency key, in order; also of this owner, as far as they are on disk."""
        for entry in self._reader.of_key(key):
            yield self._call(entry.record.run_id)

    def that_claimed(self, key: str) -> Iterator[Past]:
        """The same for a key that was made of a call's arguments; of earlier owners only."""
        if self._claims is None:
            self._claims = {}
            for entry in self._reader.of_type("call/decided"):
                claim = claim_in(entry.record)
                if claim is not None and entry.seq < self._openings[-1].first_seq:
                    self._claims.setdefault(claim.key, []).append(entry.record.run_id)
        for run_id in (*self._claims.get(key, ()), *self._claims.get(self.keyed(key), ())):
            yield self._call(run_id)

    def keyed(self, key: str) -> str:
        """The key as a call of a tool with secrets has it on record."""
        return self._reader.keyed(key)

    def close(self) -> None:
        """Let go of the file."""
        self._reader.close()

    def _call(self, run_id: str) -> Past:
        return _past(self._reader.of_run(run_id), self._openings)


def claim_in(record: Record | RawRecord) -> Claim | None:
    """The key that a `call/decided` says was taken for the call's arguments."""
    if isinstance(record, CallDecided) and record.by == CLAIMED_BY:
        return Claim.read(record.text)
    return None
