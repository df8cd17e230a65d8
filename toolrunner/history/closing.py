"""Logs cut, copied and closed: repair of an open turn, forks, places where a history may be cut. Pure; no state.

Deterministic: what is added is dated by the last record and named by the places it belongs to, so a second time adds nothing and
the rest of an interrupted repair is the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import final

from toolrunner.errors import ConfigError, ToolrunnerError
from toolrunner.facts import Source
from toolrunner.history.answers import Slot, made_up_answer
from toolrunner.history.drafts import Draft, draft_fits
from toolrunner.history.fold import Fold
from toolrunner.markers import InterruptReason
from toolrunner.records import (
    AssistantAttempt,
    AssistantMessage,
    CallRecorded,
    CallSettled,
    CompactedItem,
    HistoryCompacted,
    Record,
    RequestSent,
    StepEnded,
    StepStarted,
    TextBlock,
    TurnEnded,
    TurnStarted,
)

__all__ = ["OpenTurn", "closing_records", "compaction", "fork", "safe_cut_points"]

_HOST_ENDED = "the host ended while the turn was open"


class OpenTurn(ToolrunnerError):
    """A log was to be forked at a turn that is not over: what would be copied is still changing."""

    def __init__(self, turn_id: str, known: Sequence[str]) -> None:
        listed = ", ".join(known) or "none"
        super().__init__(f"turn {turn_id!r} is not over, or is no turn of this log; turns that are over: {listed}")
        self.turn_id = turn_id


@final
@dataclass(slots=True)
class _Open:
    """What of a log is not closed. Filled by `_read` alone."""

    turn: TurnStarted | None = None
    step: StepStarted | None = None
    request: RequestSent | None = None
    last: Record | None = None
    closed_turns: list[str] = field(default_factory=list)


def _read(records: Iterable[Record]) -> tuple[_Open, Fold]:
    found, state = _Open(), Fold()
    for record in records:
        if record.transient:
            continue
        found.last = record
        state.add(record)
        _note(found, record)
    return found, state


def _note(found: _Open, record: Record) -> None:
    match record:
        case TurnStarted():
            found.turn = record
        case StepStarted():
            found.step = record
        case RequestSent():
            found.request = record
        case AssistantMessage() | AssistantAttempt():
            found.request = None
        case StepEnded():
            found.step = None
        case TurnEnded():
            found.closed_turns.append(record.run_id)
            found.turn = found.step = found.request = None
        case _:
            pass


def closing_records(records: Sequence[Record], draft: Draft | None = None) -> list[Record]:
    """What a log lacks whose turn is open, because its process died: the calls' answers, the step's and the turn's end.

    Only for a log that nobody writes to: the turn of a live agent is open by right. A draft that continues exactly this log gives
    the text that the user had read of the reply. `seq` goes on from the last record's; the journal gives the same.
    """
    found, state = _read(records)
    if found.turn is None or found.last is None:
        return []
    turn, at = found.turn, found.last.at
    end = TurnEnded(
        run_id=turn.run_id,
        at=at,
        outcome="interrupted",
        source=Source.HOST,
        reason=_HOST_ENDED,
        interrupt=InterruptReason.CRASH,
    )
    added: list[Record] = [*_partial(found, found.last.seq, draft)]
    for slot in state.open_slots():
        added += _answer(slot, end, at)
    if found.step is not None:
        added.append(StepEnded(run_id=turn.run_id, at=at, step=found.step.step))
    return [replace(record, seq=found.last.seq + number) for number, record in enumerate([*added, end], start=1)]


def _partial(found: _Open, end: int, draft: Draft | None) -> list[Record]:
    turn, request = found.turn, found.request
    if turn is None or request is None or found.last is None or draft is None:
        return []
    if not draft_fits(draft, turn.run_id, end) or not draft.text.strip():
        return []
    block = TextBlock(draft.text, closed=False)
    return [
        AssistantMessage(
            run_id=turn.run_id,
            at=found.last.at,
            step=request.step,
            provider=request.provider,
            model=request.model,
            blocks=(block,),
            interrupted=True,
        )
    ]


def _answer(slot: Slot, end: TurnEnded, at: datetime) -> list[Record]:
    result = made_up_answer(slot, end)
    if slot.run_id is not None:
        return [CallSettled(run_id=slot.run_id, at=at, result=result)]
    call = slot.call
    recorded = CallRecorded(run_id=result.run_id, at=at, name=call.name, arguments=call.arguments, call_id=call.call_id)
    return [recorded, CallSettled(run_id=result.run_id, at=at, result=result)]


def fork(records: Sequence[Record], turn_id: str) -> list[Record]:
    """The log up to the end of this turn, however it ended; what came later of it (late results) stays behind.

    Raises:
        OpenTurn: the turn is not over, or unknown.
    """
    for number, record in enumerate(records):
        if isinstance(record, TurnEnded) and record.run_id == turn_id:
            return list(records[: number + 1])
    raise OpenTurn(turn_id, _read(records)[0].closed_turns)


def safe_cut_points(records: Iterable[Record]) -> list[int]:
    """Where a history may be cut: the `seq` of each turn's end. No call is parted from its answer there, no request is open."""
    return [record.seq for record in records if isinstance(record, TurnEnded)]


def compaction(records: Sequence[Record], through_seq: int, items: Sequence[CompactedItem], by: str) -> HistoryCompacted:
    """The record that lets `items` stand for everything up to `through_seq`.

    Raises:
        ConfigError: that is no safe place to cut, or there is nothing to stand for it.
    """
    points = safe_cut_points(records)
    if through_seq not in points:
        raise ConfigError("through_seq", through_seq, f"the end of a turn: {', '.join(map(str, points)) or 'there is none yet'}")
    if not any(item.text.strip() for item in items):
        raise ConfigError("items", items, "at least one text; a history that is left out unnoticed was never had")
    if items[0].role != "user":
        raise ConfigError("items", items, "a text in the user's role first: a conversation begins with the user")
    turn = next(record.run_id for record in records if record.seq == through_seq)
    return HistoryCompacted(run_id=turn, through_seq=through_seq, items=tuple(items), by=by)
