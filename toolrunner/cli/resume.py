"""`batch --resume`: which lines of a batch are settled already in its journal. Pure, but for what it reads of the journal.

A line is known by its call_id; without one it runs. Settled is settled, also as failed or LOST: what started is not started
again. Only a call that was stopped before it started runs now: nothing of it is on record but that it was not run.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from pydantic import JsonValue

from toolrunner.calls import ToolCall
from toolrunner.cli.lines import Malformed, Numbered
from toolrunner.facts import EffectState
from toolrunner.facts.frozen import FreezeError, freeze_arguments
from toolrunner.journal import Entry, JournalReader
from toolrunner.pipeline.idempotency import arguments_digest
from toolrunner.records import CallRecorded, CallSettled
from toolrunner.results import Outcome, ToolResult


@final
@dataclass(frozen=True, slots=True)
class Known:
    """A call that the journal has settled. `digest` None: its arguments are not on record as they were."""

    name: str
    digest: str | None
    result: ToolResult


@final
@dataclass(frozen=True, slots=True)
class Resumed:
    """What is left of a batch. `skipped` lines are settled; of those, `doubtful` have effects that are not known."""

    lines: tuple[ToolCall | Malformed, ...]
    skipped: int
    doubtful: int


def settled_calls(reader: JournalReader) -> dict[str, Known]:
    """By call_id, the settled calls of a journal that started, or were refused for a reason of their own."""
    asked: dict[str, Entry] = {}
    known: dict[str, Known] = {}
    for entry in reader.of_type("call/recorded", "call/settled"):
        record = entry.record
        if isinstance(record, CallRecorded) and record.call_id is not None:
            asked[record.run_id] = entry
        elif isinstance(record, CallSettled) and record.run_id in asked and _stands(record.result):
            first = asked[record.run_id]
            assert isinstance(first.record, CallRecorded)
            assert first.record.call_id is not None
            digest = None if first.altered else arguments_digest(first.record.name, first.record.arguments)
            known[first.record.call_id] = Known(first.record.name, digest, record.result)
    return known


def _stands(result: ToolResult) -> bool:
    return result.started or result.outcome not in (Outcome.ABORTED, Outcome.TIMED_OUT)


def resumed(lines: Sequence[Numbered], known: dict[str, Known]) -> Resumed:
    """Take out what is settled. The same call_id for something else is an error line in its place."""
    left, skipped = list[ToolCall | Malformed](), list[Known]()
    for one in lines:
        match = known.get(one.item.call_id) if isinstance(one.item, ToolCall) and one.item.call_id is not None else None
        if match is None or isinstance(one.item, Malformed):
            left.append(one.item)
            continue
        problem = _problem(one.item, match)
        if problem is None:
            skipped.append(match)
        else:
            left.append(Malformed(one.line, problem))
    return Resumed(tuple(left), len(skipped), _doubtful(skipped))


def _problem(call: ToolCall, known: Known) -> str | None:
    told = f"call_id {call.call_id!r} is settled in this journal"
    if call.name != known.name:
        return f"{told} as a call of {known.name!r}, and this is one of {call.name!r}"
    if known.digest is None:
        return f"{told}, and its arguments were masked there, so nobody can say whether this is the same call"
    if arguments_digest(call.name, _arguments(call)) != known.digest:
        return f"{told} with other arguments"
    return None


def _arguments(call: ToolCall) -> JsonValue:
    """As row 0 freezes them; what cannot be frozen is as it is, and equal to nothing on record."""
    try:
        given = json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments
        return freeze_arguments(given)
    except (FreezeError, ValueError, RecursionError):
        return str(call.arguments)


def _doubtful(skipped: Iterable[Known]) -> int:
    return sum(one.result.effects.state is EffectState.UNKNOWN for one in skipped)
