"""Recovery of one journal by its owner: read it, look for what outlived its host, write what is missing. No state.

The owner does this before it takes calls. A reader can make the same plan and write nothing (`recover --dry-run`).
"""

from dataclasses import dataclass
from typing import final

import anyio

from toolrunner.effects import DURABLE_WAIT
from toolrunner.errors import JournalFailed
from toolrunner.journal import JournalReader, SqliteJournal
from toolrunner.journal.clocks import this_process
from toolrunner.recovery.past import Past, read_all, read_open
from toolrunner.recovery.plan import Plan, plan, processes
from toolrunner.recovery.questions import Question, may_be_answered, open_question
from toolrunner.recovery.stories import Story
from toolrunner.recovery.survivors import Survivor, end, look

END_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL for what is ended at a recovery: the default of a runner's `kill_after`."""


@final
@dataclass(frozen=True, slots=True)
class Recovered:
    """What a journal says after its recovery. `plan` is what was written (or, in a dry run, would be)."""

    past: Past
    plan: Plan
    survivors: tuple[Survivor, ...]

    @property
    def questions(self) -> tuple[Question, ...]:
        """Those of the calls that stay open, as long as their time is not over."""
        found = (open_question(self.past, story) for story in self.plan.pending)
        return tuple(question for question in found if question is not None)


def dry_run(reader: JournalReader) -> Recovered:
    """What a recovery would write, and which processes it would find. Writes nothing, touches nothing."""
    past = read_all(reader)
    return _planned(past, look(processes(past.stories), same_host=past.same_host))


async def recover(journal: SqliteJournal, *, ends: bool = False, grace: float = END_GRACE) -> Recovered:
    """Give every call of earlier owners its result. To be called by the owner before it takes calls.

    An ordinary open only reports what lives. With `ends`, the whole journal is looked through, and what is found alive is ended
    first, `grace` seconds and 2 s for each at the most; the results then say what is left.

    Raises:
        JournalError: the journal cannot be read, or does not take the records.
    """
    with journal.reader() as reader:
        past = read_all(reader) if ends else read_open(reader)
    survivors = look(processes(past.stories), same_host=past.same_host)
    if ends:
        survivors = tuple([await end(one, grace) for one in survivors])
    found = _planned(past, survivors)
    await _write(found.plan, journal)
    return found


def _planned(past: Past, survivors: tuple[Survivor, ...]) -> Recovered:
    boot = this_process().boot_id

    def is_past(seq: int) -> bool:
        return past.same_host and bool(boot) and past.boot_of(seq) not in ("", boot)

    def stays(story: Story) -> bool:
        return may_be_answered(past, story)

    looked = {one.identity: one.left for one in survivors}
    return Recovered(past, plan(past.stories, looked, stays, is_past), survivors)


async def _write(missing: Plan, journal: SqliteJournal) -> None:
    """Append what is planned, and wait until it is on disk."""
    if not missing.records:
        return
    with anyio.move_on_after(DURABLE_WAIT) as bound:
        pending = journal.append(*missing.records)
        if pending is not None:
            await pending
    if bound.cancelled_caught:
        raise JournalFailed(journal.path, f"it did not take what its recovery adds within {DURABLE_WAIT:g} s")
