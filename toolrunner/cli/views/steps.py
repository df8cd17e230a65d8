"""One record in words: the name of the step that it is, and what is worth saying about it. Pure.

The words are not made harmless here: they quote foreign text, and whoever prints them does that (`printable`, or escaping).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Final, final

from toolrunner import records
from toolrunner.cli.views import conversation
from toolrunner.facts import EffectRecord

LONGEST_ARGUMENTS: Final = 400
"""Characters of arguments in one line; a whole file may be among them."""


@final
@dataclass(frozen=True, slots=True)
class Step:
    """One record, as a person reads it. `offset` is seconds since the call's first record, `owner` as in `Noted`."""

    seq: int
    name: str
    text: str
    offset: float
    record: Any
    owner: int = 0


STEP_NAMES: Mapping[str, str] = {
    "call/stop_requested": "stop requested",
    "call/stop_delivered": "stop delivered",
    "effect/planned": "effect planned",
    "effect/applied": "effect applied",
    "effect/unknown": "effect unknown",
    "effect/not_applied": "effect not applied",
    "effect/undone": "effect undone",
    "job/started": "job started",
    "job/ended": "job ended",
    **conversation.STEP_NAMES,
}
"""Names that are not just the second half of the record's type."""


def step_name(record: Any) -> str:
    """What happened, in a word or two."""
    kind = str(record.type)
    return STEP_NAMES.get(kind) or kind.rpartition("/")[2].replace("_", " ")


def compact(value: object, limit: int = LONGEST_ARGUMENTS) -> str:
    """JSON on one line, cut in the middle if it is long."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str)
    if len(text) <= limit:
        return text
    half = (limit - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


@singledispatch
def told(record: Any) -> str:
    """What is worth saying about a record besides its name. One of a type that is not known here says nothing."""
    return conversation.said(record)


@told.register
def _(record: records.CallRecorded) -> str:
    words = [compact(record.arguments) if record.problem is None else record.problem]
    if record.idempotency_key is not None:
        words.append(f"key {record.idempotency_key}")
    if record.parent_run_id is not None:
        words.append(f"child of {record.parent_run_id[:8]}")
    return "; ".join(words)


@told.register
def _(record: records.CallDecided) -> str:
    return _joined(f"{record.decision} by {record.by}", record.text)


@told.register
def _(record: records.CallAsked) -> str:
    return record.text


@told.register
def _(record: records.CallAnswered) -> str:
    lasting = " for the session" if record.for_ == "session" else ""
    return _joined(f"{record.answer}{lasting}", record.text)


@told.register
def _(record: records.CallModified) -> str:
    return f"by {record.by}: {compact(record.arguments)}"


@told.register
def _(record: records.CallDispatched) -> str:
    words = [f"attempt {record.attempt}"] if record.attempt > 1 else []
    if record.process is not None:
        words.append(f"pid {record.process.pid}")
    return ", ".join(words)


@told.register
def _(record: records.CallStopRequested) -> str:
    return _joined(f"by {record.source}, {record.phase.replace('_', ' ')}", record.reason)


@told.register
def _(record: records.CallEnded) -> str:
    if record.ended is None:
        return "not started" if not record.started else "still running"
    return f"the body {record.ended}" if record.ended != "lost" else "nobody saw its end"


@told.register
def _(record: records.CallSettled) -> str:
    return record.result.summary()


@told.register
def _(record: records.CallReconciled) -> str:
    return _joined(f"{record.as_} by the {record.by}", record.note)


@told.register(records.EffectPlanned)
@told.register(records.EffectApplied)
@told.register(records.EffectUnknown)
@told.register(records.EffectNotApplied)
@told.register(records.EffectUndone)
def _(record: Any) -> str:
    effect: EffectRecord = record.effect
    words = [f"{effect.kind} {effect.target}"]
    words += [f"receipt {effect.receipt}"] if effect.receipt is not None else []
    words += [effect.error] if effect.error is not None else []
    words += [f"of {effect.owner}"] if effect.owner is not None and effect.is_around else []
    return ", ".join(words)


@told.register
def _(record: records.JobStarted) -> str:
    return f"{record.name} ({record.job_id})"


@told.register
def _(record: records.JobEnded) -> str:
    code = f", exit status {record.exit_code}" if record.exit_code is not None else ""
    return f"{record.state}{code} ({record.job_id})"


def _joined(*words: str) -> str:
    return ": ".join(word for word in words if word)
