"""Wherever a stop or a crash comes, the next request says what is true and every provider accepts it (golden files)."""

import json
from typing import Any

import pytest
from history.windows import ROWS, SWITCHES, golden, projected, window

from toolrunner.history import check
from toolrunner.history.fold import fold
from toolrunner.history.projection import project
from toolrunner.markers import InterruptReason, is_late_result_note, marker_text
from toolrunner.wire import Provider

USER, CRASH = marker_text(InterruptReason.USER), marker_text(InterruptReason.CRASH)
KEPT = {3: "Firs", 5: "T", 6: "T", 7: "T", 9: "T", 14: "T", 15: "So f", 16: "T", 18: "Firs", 19: "T", 20: "T"}
"""What the user had read by then."""


def sent(row: int, provider: Provider, cut_calls: str = "omit", marker: str = "user") -> list[Any]:
    return project(fold(window(row, provider, cut_calls, marker).records), provider)


@pytest.mark.parametrize("row", ROWS)
def test_a_cancel_window_gives_what_its_golden_file_says(row: int) -> None:
    assert projected(row) == json.loads(golden(row).read_text(encoding="utf-8"))


@pytest.mark.parametrize("provider", Provider)
@pytest.mark.parametrize("cut_calls, marker", SWITCHES)
@pytest.mark.parametrize("row", ROWS)
def test_what_is_sent_after_a_cancel_window_breaks_no_rule(row: int, cut_calls: str, marker: str, provider: Provider) -> None:
    assert check(sent(row, provider, cut_calls, marker), provider) == []


@pytest.mark.parametrize("provider", Provider)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.case("H33")
def test_an_interruption_is_told_once_and_only_if_there_was_one(row: int, provider: Provider) -> None:
    said = json.dumps(sent(row, provider))
    expected = CRASH if row >= 18 else USER
    assert said.count("[Request interrupted") == said.count(expected) == (0 if row == 16 else 1)
    assert "[Request interrupted" not in json.dumps(sent(row, provider, marker="off"))


@pytest.mark.parametrize("provider", Provider)
@pytest.mark.parametrize("row, text", KEPT.items())
@pytest.mark.case("C17")
def test_what_the_user_read_is_in_the_next_request(row: int, text: str, provider: Provider) -> None:
    assert f'"{text}"' in json.dumps(sent(row, provider))


@pytest.mark.parametrize("provider", Provider)
@pytest.mark.parametrize("row", [0, 1, 2, 4])
@pytest.mark.case("C24", "H34", "H35")
def test_where_nothing_could_be_kept_no_empty_message_stands(row: int, provider: Provider) -> None:
    assert sent(row, provider) == sent(0, provider)


@pytest.mark.parametrize("provider", Provider)
@pytest.mark.case("C20", "H37")
def test_a_half_call_is_in_no_request(provider: Provider) -> None:
    for cut_calls in ("omit", "answer"):
        assert "path" not in json.dumps(sent(5, provider, cut_calls))


@pytest.mark.parametrize("provider", Provider)
def test_whole_calls_of_a_cut_response_are_left_out_or_answered_as_the_session_says(provider: Provider) -> None:
    assert sent(6, provider) == sent(5, provider)
    answered = json.dumps(sent(6, provider, "answer"))
    assert answered.count("was stopped before it started") == 1
    assert "read" in answered


@pytest.mark.parametrize("provider", Provider)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.case("H28")
def test_of_a_call_that_was_dispatched_it_is_never_said_that_it_did_not_run(row: int, provider: Provider) -> None:
    said = json.dumps(sent(row, provider))
    not_run = said.count("before it started")
    assert not_run == {7: 1, 8: 1, 13: 1, 19: 1}.get(row, 0)


@pytest.mark.parametrize("provider", Provider)
@pytest.mark.case("H29", "H23")
def test_real_results_stay_what_they_are(provider: Provider) -> None:
    for row in (11, 13, 14, 21):
        assert '"R' in json.dumps(sent(row, provider)), row
    assert "half of it" in json.dumps(sent(10, provider))


@pytest.mark.parametrize("provider", Provider)
def test_an_end_that_comes_after_its_answer_was_sent_is_a_note_and_before_that_the_answer(provider: Provider) -> None:
    log = window(12, provider, "omit", "user")
    said = project(fold(log.records), provider)
    notes = [text for text in _strings(said) if is_late_result_note(text)]
    assert notes == ["[Late result of `read`: it came to its end; its change was made]"]
    late = log.records[-3]
    assert late.type == "call/ended"
    turn = next(number for number, record in enumerate(log.records) if record.type == "turn/end")
    early = [*log.records[: turn + 1], late, *log.records[turn + 1 :]]
    told = json.dumps(project(fold(early), provider))
    assert "Late result" not in told
    assert "still running" not in told.lower()
    assert "finished before it could be stopped" in told


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _strings(one)]
