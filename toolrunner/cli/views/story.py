"""The records of one call as one story: who it was, what happened to it in which order, how it stands. A pure fold.

Order is `seq`. Lengths of time come from the clock that counts on while the machine sleeps (CLOCK_BOOTTIME), where the journal
says what it was; the wall clock is for display.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import Any, final

from pydantic import JsonValue

from toolrunner import records
from toolrunner.cli.views.steps import Step, step_name, told
from toolrunner.results import ToolResult

OVER = (records.CallEnded, records.CallSettled)


class Standing(StrEnum):
    """How far a call got, as far as its records say. Whether anybody is still at work on it only its owner knows."""

    ACCEPTED = "accepted"
    ASKED = "waits for approval"
    DISPATCHED = "dispatched"
    ENDED = "ended"
    SETTLED = "settled"


@final
@dataclass(frozen=True, slots=True)
class Noted:
    """A record, and when it was made on the session's one clock: seconds that only ever grow.

    `owner`: in which opening of the journal, by their order.
    """

    record: Any
    at: float
    owner: int = 0


@final
@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a call's life, in seconds since its first record. `end` None: it is not over, as far as the records say."""

    name: str
    start: float
    end: float | None


@final
@dataclass(frozen=True, slots=True)
class Story:
    """One call. `began_at` is `began` on the session's clock."""

    run_id: str
    call_id: str | None
    name: str
    arguments: JsonValue
    parent_run_id: str | None
    idempotency_key: str | None
    began: datetime
    began_at: float
    steps: tuple[Step, ...]
    stretches: tuple[Stretch, ...]
    standing: Standing
    result: ToolResult | None

    @property
    def ends(self) -> float:
        """Seconds from its first to its last record."""
        return self.steps[-1].offset

    @property
    def verdict(self) -> str:
        """Its outcome, or how far it got."""
        return str(self.result.outcome) if self.result is not None else str(self.standing)


def stories(taken: Iterable[Noted]) -> tuple[Story, ...]:
    """One story for each call, in the order in which they were accepted. Records of no call are left out."""
    by_run: dict[str, list[Noted]] = {}
    for noted in taken:
        by_run.setdefault(noted.record.run_id, []).append(noted)
    return tuple(story(own) for own in by_run.values() if isinstance(own[0].record, records.CallRecorded))


def story(own: Iterable[Noted]) -> Story:
    """The story of one call; `own` are its records in order, the first being `call/recorded`."""
    noted = list(own)
    first, began_at = noted[0].record, noted[0].at
    rest = [one.record for one in noted[1:]]
    steps = tuple(
        Step(one.record.seq, step_name(one.record), told(one.record), one.at - began_at, one.record, one.owner) for one in noted
    )
    modified = [one.arguments for one in rest if isinstance(one, records.CallModified)]
    return Story(
        run_id=first.run_id,
        call_id=first.call_id,
        name=first.name,
        arguments=modified[-1] if modified else first.arguments,
        parent_run_id=first.parent_run_id,
        idempotency_key=first.idempotency_key,
        began=first.at,
        began_at=began_at,
        steps=steps,
        stretches=tuple(_stretches(steps)),
        standing=_standing(steps),
        result=next((one.result for one in reversed(rest) if isinstance(one, OVER) and one.result is not None), None),
    )


_FURTHEST: Mapping[type, Standing] = {
    records.CallAsked: Standing.ASKED,
    records.CallAnswered: Standing.ACCEPTED,
    records.CallDispatched: Standing.DISPATCHED,
    records.CallEnded: Standing.ENDED,
    records.CallSettled: Standing.SETTLED,
}


def _standing(steps: tuple[Step, ...]) -> Standing:
    standing = Standing.ACCEPTED
    for step in steps:
        standing = _FURTHEST.get(type(step.record), standing)
    return standing


def _stretches(steps: tuple[Step, ...]) -> Iterable[Stretch]:
    """What the call spent its time with. Each is there only if it began."""
    dispatched = _offset(steps, records.CallDispatched)
    over = _offset(steps, records.CallEnded)
    settled = _offset(steps, records.CallSettled)
    if settled is not None and over is None and not _was_closed_later(steps):
        over = settled
    yield Stretch("waiting", 0.0, dispatched if dispatched is not None else over)
    asked = _offset(steps, records.CallAsked)
    if asked is not None:
        yield Stretch("approval", asked, _offset(steps, records.CallAnswered))
    if dispatched is not None:
        yield Stretch("running", dispatched, over)
    requested = _offset(steps, records.CallStopRequested)
    if requested is not None and dispatched is not None:
        yield Stretch("stopping", requested, max(over, requested) if over is not None else None)
    if over is not None and settled is not None and settled > over:
        yield Stretch("finishing", over, None if _was_closed_later(steps) else settled)


def _was_closed_later(steps: tuple[Step, ...]) -> bool:
    """Whether its result is the word of a recovery, which says nothing of when its host or its body ended."""
    return any(isinstance(one.record, records.CallSettled) and one.owner != before.owner for before, one in pairwise(steps))


def _offset(steps: tuple[Step, ...], kind: type) -> float | None:
    """When the first record of this kind came; the last answer and end count, because a call may be asked or tried again."""
    found = [step.offset for step in steps if isinstance(step.record, kind)]
    if not found:
        return None
    return found[-1] if kind in (records.CallAnswered, records.CallEnded) else found[0]
