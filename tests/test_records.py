"""The one vocabulary of records: each kind goes to JSON and back as itself, told apart by its type."""

import json
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, timedelta
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from results.legal import json_values, result, results, running, texts, times

from toolrunner.facts import EffectRecord, ProcessIdentity, Text
from toolrunner.records import (
    CallAnswered,
    CallBlock,
    CallDecided,
    CallEnded,
    CallSettled,
    Progress,
    ReasoningBlock,
    Record,
    RedactedBlock,
    TextBlock,
    UnknownBlock,
    now,
)
from toolrunner.results import Code, Ended, Outcome, ToolResult

KINDS: tuple[type[Any], ...] = get_args(get_args(Record)[0])
ADAPTER: TypeAdapter[Any] = TypeAdapter(Record)
NAMES = {
    "call/recorded", "call/decided", "call/asked", "call/answered", "call/modified", "call/dispatched", "call/stop_requested",
    "call/stop_delivered", "call/ended", "call/settled", "call/reconciled", "effect/planned", "effect/applied",
    "effect/unknown", "effect/not_applied", "effect/undone", "job/started", "job/ended", "output", "progress", "still_running",
    "turn/start", "turn/end", "step/start", "step/end", "user/message", "request/sent", "assistant/message", "assistant/attempt",
    "history/compacted", "inbox/queued", "inbox/claimed", "inbox/cancelled",
}  # fmt: skip
TRANSIENT = {"output", "progress", "still_running"}

METAS = st.dictionaries(texts, json_values, max_size=2)
BLOCKS = st.one_of(
    st.builds(TextBlock, texts, st.booleans(), st.none() | texts, st.none() | texts),
    st.builds(ReasoningBlock, texts, st.booleans(), st.none() | texts, st.none() | texts, st.none() | texts, METAS),
    st.builds(RedactedBlock, texts, st.booleans()),
    st.builds(CallBlock, texts, texts, st.none() | texts, texts, st.booleans(), METAS),
    st.builds(UnknownBlock, METAS, st.booleans()),
)

SPECIAL: dict[str, st.SearchStrategy[Any]] = {
    "arguments": json_values,
    "value": json_values,
    "at": times,
    "what": running,
    "running": running,
    "effect": st.from_type(EffectRecord),
    "process": st.none() | st.from_type(ProcessIdentity),
    "outcome": st.sampled_from(Outcome),
    "code": st.none() | st.sampled_from(Code),
    "ended": st.none() | st.sampled_from(Ended),
    "expires": st.none() | st.floats(0, 1e9),
    "timeout": st.none() | st.floats(0, 1e9),
    "waited": st.floats(0, 100),
    "done": st.none() | st.floats(0, 100),
    "total": st.none() | st.floats(0, 100),
    "content": st.lists(st.builds(Text, texts), max_size=3).map(tuple),
    "blocks": st.lists(BLOCKS, max_size=3).map(tuple),
    "stream": json_values,
    "usage": METAS,
    "meta": METAS,
    "provider_meta": METAS,
    "replay": st.none() | st.lists(json_values, max_size=2).map(tuple),
}


@st.composite
def records(draw: st.DrawFn, kind: type[Any]) -> Any:
    made: dict[str, Any] = {}
    for one in fields(kind):
        if one.name == "type":
            continue
        if one.name == "result":
            made["result"] = draw(results() if kind is CallSettled else st.none() | results())
        elif one.name in SPECIAL and get_origin(one.type) is not Literal:
            made[one.name] = draw(SPECIAL[one.name])
        else:
            made[one.name] = draw(st.from_type(one.type) if not isinstance(one.type, str) else texts)
    return kind(**made)


def test_the_vocabulary_is_that_of_the_design() -> None:
    assert {kind.__dataclass_fields__["type"].default for kind in KINDS} == NAMES
    assert {kind.__dataclass_fields__["type"].default for kind in KINDS if kind.transient} == TRANSIENT


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_record_goes_to_json_and_back_as_itself(kind: type[Any], data: st.DataObject) -> None:
    one = data.draw(records(kind))
    written = ADAPTER.dump_json(one)
    again = ADAPTER.validate_json(written)
    assert type(again) is kind
    assert again == one
    plain = ADAPTER.dump_python(one, mode="json")
    assert json.loads(written) == plain
    assert ADAPTER.validate_python(plain) == one
    assert plain["type"] in NAMES


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_nobody_can_change_a_record(kind: type[Any]) -> None:
    assert kind.__dataclass_params__.frozen
    assert not hasattr(kind, "__dict__") or "__slots__" in vars(kind)
    assert kind.__doc__


@pytest.mark.case("T25")
def test_an_observer_cannot_change_what_it_is_shown() -> None:
    settled = CallSettled(run_id="r", result=result())
    with pytest.raises(FrozenInstanceError):
        settled.run_id = "other"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        settled.result.outcome = Outcome.FAILED  # type: ignore[misc]


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"type": "call/unheard_of", "run_id": "r"},
        {"type": "call/decided", "run_id": "r", "decision": "perhaps", "by": "x"},
        {"type": "call/stop_delivered"},
        {"type": "call/settled", "run_id": "r", "result": {"run_id": "r"}},
    ],
)
def test_what_is_no_record_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(data)


def test_a_record_with_a_result_that_cannot_be_true_is_refused() -> None:
    plain = ADAPTER.dump_python(CallSettled(run_id="r", result=result()), mode="json")
    plain["result"]["started"] = False
    with pytest.raises(ValidationError, match="cannot be true"):
        ADAPTER.validate_python(plain)


def test_fields_are_told_by_name_and_have_their_defaults() -> None:
    one = CallDecided(run_id="r", decision="allow", by="no policy")
    assert (one.seq, one.v, one.text, one.transient) == (0, 1, "", False)
    assert replace(one, seq=3).seq == 3
    positional: Any = CallDecided
    with pytest.raises(TypeError):
        positional("r", "allow", "x")
    assert CallAnswered(run_id="r", approval_id="a", answer="allow").for_ == "once"
    assert Progress(run_id="r").transient


def test_the_time_of_a_record_is_utc() -> None:
    at = Progress(run_id="r").at
    assert at.tzinfo is UTC
    assert abs(now() - at) < timedelta(minutes=1)
    assert ADAPTER.dump_python(Progress(run_id="r", at=at), mode="json")["at"].endswith("Z")


def test_an_ended_record_carries_the_result_as_the_body_left_it() -> None:
    kept = result()
    one = CallEnded(run_id="r", outcome=kept.outcome, code=kept.code, ended=kept.ended, started=kept.started, result=kept)
    again = ADAPTER.validate_json(ADAPTER.dump_json(one))
    assert isinstance(again.result, ToolResult)
    assert again.result == kept
