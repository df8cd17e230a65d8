"""The legal order of a call's records, as one pass over a journal. State: what was seen of each call so far.

It asks only for what every writer kept to: recorded first, an answer for a question, a dispatch before an end, exactly one
settled, plans before what became of them. A body that ran on after its call was settled may still end, and its effects with it.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, final

from toolrunner.records import (
    CallAnswered,
    CallAsked,
    CallDispatched,
    CallEnded,
    CallRecorded,
    CallSettled,
    EffectPlanned,
)

_BEFORE_SETTLED = ("call/decided", "call/asked", "call/answered", "call/modified", "call/dispatched")


@final
@dataclass(slots=True)
class _Seen:
    is_settled: bool = False
    dispatched: int = 0
    ended: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    planned: set[str] = field(default_factory=set)


@final
class Order:
    """Give it every record in turn; `look` says what is wrong with this one."""

    def __init__(self) -> None:
        self._calls: dict[str, _Seen] = {}

    @property
    def unsettled(self) -> tuple[str, ...]:
        """Calls without a result so far."""
        return tuple(run_id for run_id, seen in self._calls.items() if not seen.is_settled)

    def look(self, record: Any) -> str | None:
        """What this record contradicts, or None."""
        if not record.type.startswith(("call/", "effect/")):
            return None
        seen = self._calls.get(record.run_id)
        if isinstance(record, CallRecorded):
            self._calls.setdefault(record.run_id, _Seen())
            return None if seen is None else "it is recorded a second time"
        if seen is None:
            self._calls[record.run_id] = _Seen()  # told once
            return f"{record.type} of a call that was never recorded"
        if seen.is_settled and record.type in _BEFORE_SETTLED:
            return f"{record.type} after it was settled"
        return _of_effect(seen, record) if record.type.startswith("effect/") else _of_call(seen, record)


def _of_call(seen: _Seen, record: Any) -> str | None:
    wrong = None
    match record:
        case CallAsked():
            seen.asked[record.approval_id] += 1
            wrong = "a question is asked twice" if seen.asked[record.approval_id] > 1 else None
        case CallAnswered():
            # Dropped to zero, it has been asked and answered; below, it never was, or was answered before.
            seen.asked[record.approval_id] -= 1
            wrong = "an answer without its question" if seen.asked[record.approval_id] < 0 else None
        case CallDispatched():
            seen.dispatched += 1
        case CallEnded():
            seen.ended += 1
            wrong = "it ended more often than it was dispatched" if seen.ended > seen.dispatched else None
        case CallSettled():
            wrong = "it is settled a second time" if seen.is_settled else _of_settled(seen, record)
            seen.is_settled = True
    return wrong


def _of_settled(seen: _Seen, record: CallSettled) -> str | None:
    result = record.result
    if result.started and not seen.dispatched and not result.replayed and result.about_run_id is None:
        return "its result says that it started, and it was never dispatched"
    if not result.started and seen.ended:
        return "its result says that it never started, and it ended"
    return None


def _of_effect(seen: _Seen, record: Any) -> str | None:
    if isinstance(record, EffectPlanned):
        seen.planned.add(record.effect.effect_id)
        return None
    known = record.effect.effect_id in seen.planned
    return None if known else f"{record.type} of an effect that was never planned"
