"""Stories: what a journal's records say of each call, and of each job. Pure: records in, frozen-in-use values out; no state.

The order of records is the truth: a story keeps of each kind what its last record said, except where every one counts
(dispatches, effects). Records of a kind that is not known here (a newer minor version's) are passed over: they can only add.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import final

from pydantic import JsonValue

from toolrunner.facts import EffectRecord
from toolrunner.records import (
    CallAnswered,
    CallAsked,
    CallDecided,
    CallDispatched,
    CallEnded,
    CallModified,
    CallReconciled,
    CallRecorded,
    CallSettled,
    CallStopDelivered,
    CallStopRequested,
    EffectApplied,
    EffectNotApplied,
    EffectPlanned,
    EffectUndone,
    EffectUnknown,
    JobEnded,
    JobStarted,
    Record,
)


@final
@dataclass(slots=True)
class Story:
    """One call, as far as it is written. Filled by `read_stories` alone."""

    run_id: str
    recorded: CallRecorded | None = None
    """None: its first record is missing (cut off by retention, or a stray); what follows is told all the same."""
    denial: CallDecided | None = None
    """The first `deny` or `cancel` of row 3 or 5."""
    decisions: list[CallDecided] = field(default_factory=list)
    asked: CallAsked | None = None
    answered: CallAnswered | None = None
    """The answer to `asked`, and not to an earlier question."""
    modified: CallModified | None = None
    dispatched: list[CallDispatched] = field(default_factory=list)
    stop: CallStopRequested | None = None
    delivered: CallStopDelivered | None = None
    ended: CallEnded | None = None
    """The end of the last attempt that was dispatched; None while that attempt may still have run."""
    effects: dict[str, EffectRecord] = field(default_factory=dict)
    """Latest stage of each, in the order in which they were planned."""
    effects_after_end: bool = False
    """An effect's record came after `ended`: an undo, which the result in `ended` does not know of."""
    settled: CallSettled | None = None
    jobs: dict[str, JobStarted] = field(default_factory=dict)
    """Its jobs whose end nobody saw: without a `job/ended`, or lost and perhaps still alive."""
    jobs_over: set[str] = field(default_factory=set)
    """Those of `jobs` that have their `job/ended`."""
    reconciled: CallReconciled | None = None
    """The last word of somebody who looked what became of it."""
    children: list["Story"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The tool it was made for."""
        if self.recorded is not None:
            return self.recorded.name
        if self.dispatched:
            return self.dispatched[-1].name
        return self.settled.result.name if self.settled is not None else ""

    @property
    def arguments(self) -> JsonValue:
        """Those that were last judged, or executed."""
        if self.dispatched:
            return self.dispatched[-1].arguments
        if self.modified is not None:
            return self.modified.arguments
        return self.recorded.arguments if self.recorded is not None else None

    @property
    def is_call(self) -> bool:
        """Whether it is a call at all: a job that no call started has a story of its own, of job records only."""
        return self.recorded is not None or bool(self.dispatched) or self.ended is not None or self.settled is not None

    def effects_below(self) -> dict[str, EffectRecord]:
        """The latest stage of its effects and of those of the calls made in its body, whoever of them told it."""
        found: dict[str, EffectRecord] = {}
        for story in _post_order(self):
            found |= story.effects
        return found

    @property
    def is_open(self) -> bool:
        """Whether its result is missing."""
        return self.is_call and self.settled is None


@final
@dataclass(slots=True)
class Stories:
    """All calls of one journal by run id, in the order of their first records."""

    by_run: dict[str, Story] = field(default_factory=dict)
    last_at: datetime | None = None
    """When the last record was written (wall time, for display). What recovery adds is dated by it, so it is always the same."""

    def open(self) -> list[Story]:
        """Calls without a result, children before the calls that made them."""
        return [story for root in self.by_run.values() if self._is_root(root) for story in _post_order(root) if story.is_open]

    def _is_root(self, story: Story) -> bool:
        parent = story.recorded.parent_run_id if story.recorded is not None else None
        return parent is None or parent not in self.by_run


def read_stories(records: Iterable[Record]) -> Stories:
    """The stories that records tell, in journal order."""
    stories = Stories()
    for record in records:
        if record.transient:
            continue
        stories.last_at = record.at
        story = stories.by_run.get(record.run_id)
        if story is None:
            story = stories.by_run[record.run_id] = Story(record.run_id)
        _add(story, record)
        if isinstance(record, CallRecorded) and record.parent_run_id in stories.by_run:
            stories.by_run[record.parent_run_id].children.append(story)
    return stories


def _add(story: Story, record: Record) -> None:
    match record:
        case CallDispatched():
            story.dispatched.append(record)
            story.ended, story.effects_after_end = None, False
        case CallEnded():
            story.ended = record
        case CallSettled():
            story.settled = story.settled or record  # the first result of a call is its only one
        case EffectPlanned() | EffectApplied() | EffectUnknown() | EffectNotApplied() | EffectUndone():
            story.effects[record.effect.effect_id] = record.effect
            story.effects_after_end = story.ended is not None
        case CallStopRequested() | CallStopDelivered() | CallReconciled():
            _add_word(story, record)
        case JobStarted() | JobEnded():
            _add_job(story, record)
        case _:
            _add_before_dispatch(story, record)


def _add_word(story: Story, record: CallStopRequested | CallStopDelivered | CallReconciled) -> None:
    match record:
        case CallStopRequested():
            story.stop = story.stop or record
        case CallStopDelivered():
            story.delivered = story.delivered or record
        case CallReconciled():
            story.reconciled = record


def _add_job(story: Story, record: JobStarted | JobEnded) -> None:
    match record:
        case JobStarted():
            story.jobs[record.job_id] = record
        case JobEnded(state="lost", still_running=left) if left != ():
            story.jobs_over.add(record.job_id)
        case JobEnded():
            story.jobs.pop(record.job_id, None)


def _add_before_dispatch(story: Story, record: Record) -> None:
    match record:
        case CallRecorded():
            story.recorded = story.recorded or record
        case CallDecided():
            story.decisions.append(record)
            if record.decision in ("deny", "cancel"):
                story.denial = story.denial or record
        case CallAsked():
            story.asked, story.answered = record, None
        case CallAnswered():
            if story.asked is not None and story.asked.approval_id == record.approval_id:
                story.answered = record
        case CallModified():
            story.modified = record
        case _:
            pass


def _post_order(story: Story) -> Iterable[Story]:
    """A call after its children. Iterative: how deep calls nest is the tools' affair."""
    waiting, order = [story], list[Story]()
    while waiting:
        one = waiting.pop()
        order.append(one)
        waiting.extend(one.children)
    return reversed(order)
