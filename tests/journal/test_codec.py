"""Records as text and back: every kind as itself, old versions brought up to date, later ones handed out as they lie."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from journal.stage import recorded
from results.legal import result
from test_records import KINDS, records

from toolrunner import SqliteJournal
from toolrunner.facts import EffectRecord, EffectStage
from toolrunner.facts.frozen import freeze_arguments
from toolrunner.journal import JournalReader, RawRecord, check
from toolrunner.journal.codec import VERSIONS, from_json, to_json, upcast
from toolrunner.records import CallEnded, CallModified, CallRecorded, CallSettled, EffectPlanned


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), seq=st.integers(1, 2**40))
def test_a_record_comes_back_as_itself_with_its_number(kind: type[Any], data: st.DataObject, seq: int) -> None:
    one = replace(data.draw(records(kind)), v=VERSIONS[kind.__dataclass_fields__["type"].default])
    again = from_json(seq, one.type, one.v, one.run_id, to_json(one))
    assert type(again) is kind
    assert again.seq == seq
    object.__setattr__(again, "seq", one.seq)
    assert again == one


def test_the_text_has_version_and_type_and_no_number() -> None:
    content = json.loads(to_json(recorded(1)))
    assert (content["v"], content["type"]) == (1, "call/recorded")
    assert "seq" not in content


@pytest.mark.parametrize(
    "arguments",
    [{"deep": json.loads("[" * 199 + "]" * 199)}, {"big": 10**400}, {"text": "\0\x1b\u202e"}],
    ids=["deep", "big", "control"],
)
def test_what_is_hard_to_say_in_json_comes_back_too(arguments: dict[str, Any]) -> None:
    one = CallModified(run_id="r", arguments=freeze_arguments(arguments), by="me")
    again = from_json(1, one.type, 1, "r", to_json(one))
    assert isinstance(again, CallModified)
    assert again.arguments == arguments


def test_a_name_that_is_no_utf_8_comes_back_too() -> None:
    one = EffectPlanned(run_id="r", effect=EffectRecord("r/1", "write", "\udcff", EffectStage.PLANNED))
    again = from_json(1, one.type, 1, "r", to_json(one))
    assert isinstance(again, EffectPlanned)
    assert again.effect == one.effect


def test_an_older_version_is_brought_up_to_date_step_by_step() -> None:
    ways = {
        ("call/recorded", -1): lambda content: {**content, "tool": content["tool_name"]},
        ("call/recorded", 0): lambda content: {**content, "name": content["tool"]},
    }
    content = upcast("call/recorded", -1, {"v": -1, "tool_name": "write"}, ways)
    assert (content["name"], content["v"]) == ("write", VERSIONS["call/recorded"])
    with pytest.raises(ValueError, match="version -2"):
        upcast("call/recorded", -2, {}, ways)


@pytest.mark.parametrize(
    "kind, version, text, later",
    [
        ("call/teleported", 1, '{"where":"home"}', True),
        ("call/recorded", 99, '{"v":99}', True),
        ("call/recorded", 0, "{}", False),
        ("call/recorded", 1, "{}", False),
        ("call/recorded", 1, "[1]", False),
        ("call/recorded", 1, "not json", False),
        ("call/recorded", 1, "[" * 100_000, False),
    ],
)
def test_what_cannot_be_read_as_a_record_is_handed_out_as_it_lies_there(kind: str, version: int, text: str, later: bool) -> None:
    one = from_json(7, kind, version, "run-1", text)
    assert isinstance(one, RawRecord)
    assert (one.seq, one.run_id, one.type, one.v, one.is_later) == (7, "run-1", kind, version, later)
    assert one.problem


def test_a_result_that_cannot_be_true_is_handed_out_raw() -> None:
    text = to_json(CallSettled(run_id="r", result=result())).replace('"started":true', '"started":false')
    one = from_json(1, "call/settled", 1, "r", text)
    assert isinstance(one, RawRecord)
    assert "cannot be true" in one.problem


def test_a_file_with_records_of_later_days_can_be_read_exported_and_checked(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    journal.append(recorded(1))
    journal.close()
    with sqlite3.connect(tmp_path / "journal.db") as connection:
        connection.execute("INSERT INTO records VALUES (2, 0, 'run-1', 'call/dreamt', 1, 0, NULL, NULL, '{\"of\":\"sheep\"}')")
    connection.close()
    with JournalReader(tmp_path) as reader:
        first, second = (entry.record for entry in reader)
    assert isinstance(first, CallRecorded)
    assert isinstance(second, RawRecord)
    assert second.content == {"of": "sheep"}
    report = check(tmp_path)
    assert (report.problems, report.unknown) == ((), 1)


def test_an_ended_record_keeps_its_result() -> None:
    kept = result()
    one = CallEnded(run_id="r", outcome=kept.outcome, code=kept.code, ended=kept.ended, started=kept.started, result=kept)
    again = from_json(1, one.type, 1, "r", to_json(one))
    assert isinstance(again, CallEnded)
    assert again.result == kept
