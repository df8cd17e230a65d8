"""An interrupted turn on a plain list: what is added, and that nothing else changes."""

import copy
from typing import Any

import pytest
from history.samples import WHOLE, Items, cut

from toolrunner.facts import Effects, EffectState, Evidence, Text
from toolrunner.history import (
    Draft,
    InterruptReason,
    append_marker,
    check,
    close_interrupted,
    is_tool_in_flight_note,
    migrate_legacy_abort_context,
    recover_crashed_turn,
    repair,
    tool_in_flight_note_message,
)
from toolrunner.history.atoms import take_apart
from toolrunner.history.interruption import text_of
from toolrunner.history.repairs.work import UNKNOWN_ANSWER
from toolrunner.history.shapes import shape_of
from toolrunner.markers import marker_text
from toolrunner.results import Ended, Outcome, ToolResult
from toolrunner.wire import Provider

MARKER = marker_text(InterruptReason.USER)
# Where the calls of the sample stand open: right behind the message that made them.
OPEN = {
    Provider.ANTHROPIC: 2,
    Provider.OPENAI_CHAT: 3,
    Provider.OPENAI_RESPONSES: 4,
    Provider.GEMINI: 2,
    Provider.GEMINI_INTERACTIONS: 4,
}


def texts(messages: Items, provider: Provider) -> list[str | None]:
    return [text_of(atom) for atom in take_apart(shape_of(provider), messages)]


def real_result() -> ToolResult:
    effects = Effects(EffectState.COMPLETED, Evidence.ASSUMED)
    return ToolResult("r1", "read", Outcome.SUCCEEDED, True, effects, ended=Ended.RETURNED, call_id="t1", content=(Text("AAA"),))


@pytest.mark.parametrize("provider", Provider)
def test_a_marker_is_appended_once_and_the_first_reason_stands(provider: Provider) -> None:
    messages = WHOLE[provider]()
    before = list(messages)
    assert append_marker(messages, InterruptReason.COST, provider=provider)
    assert not append_marker(messages, InterruptReason.USER, provider=provider)
    assert texts(messages[-1:], provider) == [marker_text(InterruptReason.COST)]
    assert len(messages) == len(before) + 1
    assert all(new is old for new, old in zip(messages, before, strict=False))


@pytest.mark.parametrize("provider", Provider)
def test_a_users_text_that_looks_like_a_marker_is_none(provider: Provider) -> None:
    messages = [shape_of(provider).user([Text(f"{MARKER} - what is that?")])]
    assert append_marker(messages, InterruptReason.USER, provider=provider)
    assert len(messages) == 2


@pytest.mark.parametrize("provider", Provider)
@pytest.mark.case("H1", "H2", "H4", "H5", "H7", "H25")
def test_every_open_call_gets_one_answer_real_where_there_is_one(provider: Provider) -> None:
    messages = cut(OPEN[provider])(WHOLE[provider]())
    before, held = copy.deepcopy(messages), list(messages)
    added = close_interrupted(messages, provider, results=[real_result()])
    assert messages[: len(before)] == before
    assert all(new is old for new, old in zip(messages, held, strict=False))
    assert messages[len(before) :] == added
    assert check(messages, provider) == []
    said = repr(added)
    assert said.count("AAA") == 1
    assert said.count(UNKNOWN_ANSWER) == 1
    assert said.index("AAA") < said.index(UNKNOWN_ANSWER) < said.index(MARKER)


@pytest.mark.parametrize("provider", Provider)
@pytest.mark.case("H27")
def test_of_a_call_without_a_result_neither_running_nor_not_running_is_said(provider: Provider) -> None:
    messages = cut(OPEN[provider])(WHOLE[provider]())
    said = repr(close_interrupted(messages, provider))
    assert said.count(UNKNOWN_ANSWER) == 2
    for claim in ("not run", "not started", "was started", "cancelled", "no change", "completed"):
        assert claim not in UNKNOWN_ANSWER.lower()


@pytest.mark.parametrize("provider", Provider)
def test_what_the_user_read_of_a_reply_is_kept_and_a_blank_is_not(provider: Provider) -> None:
    messages = WHOLE[provider]()
    added = close_interrupted(messages, provider, partial="First, the ", reason=InterruptReason.HOST)
    assert texts(added, provider) == ["First, the ", marker_text(InterruptReason.HOST)]
    assert check(messages, provider) == []
    blank = WHOLE[provider]()
    assert texts(close_interrupted(blank, provider, partial=" \n"), provider) == [MARKER]


@pytest.mark.parametrize("provider", Provider)
def test_closing_twice_adds_nothing(provider: Provider) -> None:
    messages = cut(OPEN[provider])(WHOLE[provider]())
    close_interrupted(messages, provider)
    assert close_interrupted(messages, provider) == []


@pytest.mark.parametrize("provider", Provider)
def test_a_round_that_is_whole_is_kept_and_only_marked(provider: Provider) -> None:
    messages = WHOLE[provider]()
    assert texts(close_interrupted(messages, provider), provider) == [MARKER]


@pytest.mark.parametrize("provider", [Provider.ANTHROPIC, Provider.GEMINI])
def test_a_marker_next_to_the_users_words_is_joined_by_a_repair(provider: Provider) -> None:
    messages = WHOLE[provider]()
    append_marker(messages, InterruptReason.USER, provider=provider)
    assert {one.rule for one in check(messages, provider)} <= {"AN9", "GM6"}
    assert repair(messages, provider)
    assert check(messages, provider) == []
    assert texts(messages, provider)[-2:] == ["thanks", MARKER]


@pytest.mark.parametrize("provider", Provider)
def test_a_note_is_a_plain_message_known_by_its_text(provider: Provider) -> None:
    note = tool_in_flight_note_message(InterruptReason.USER, ["shell"], provider=provider)
    assert is_tool_in_flight_note(note, provider=provider)
    assert texts([note], provider) == ["[Request interrupted by user; `shell` may have already started]"]
    assert not is_tool_in_flight_note(shape_of(provider).user([Text(MARKER)]), provider=provider)
    assert is_tool_in_flight_note("[Request interrupted by user; `shell` may have already started]")


@pytest.mark.parametrize("provider", Provider)
def test_a_legacy_recap_is_dropped_and_a_marker_takes_its_place(provider: Provider) -> None:
    messages = WHOLE[provider]()
    assert migrate_legacy_abort_context(messages, "You were about to call shell", provider=provider)
    assert texts(messages, provider)[-1] == marker_text(InterruptReason.UNKNOWN)
    assert "about to call" not in repr(messages)
    assert not migrate_legacy_abort_context(messages, None, provider=provider)
    empty: Items = []
    assert migrate_legacy_abort_context(empty, "You were", provider=provider)
    assert empty == []


@pytest.mark.parametrize("provider", Provider)
def test_a_crash_in_mid_reply_keeps_the_text_and_marks_it(provider: Provider) -> None:
    messages = WHOLE[provider]()
    draft = Draft("turn", base=len(messages), text="First, the ")
    assert recover_crashed_turn(messages, draft, provider=provider)
    assert texts(messages, provider)[-2:] == ["First, the ", marker_text(InterruptReason.CRASH)]
    after = copy.deepcopy(messages)
    assert not recover_crashed_turn(messages, draft, provider=provider)
    assert messages == after


@pytest.mark.parametrize("provider", Provider)
@pytest.mark.parametrize("base", [0, 2, 50])
def test_a_stale_draft_gives_no_text(provider: Provider, base: int) -> None:
    messages = WHOLE[provider]()
    assert recover_crashed_turn(messages, Draft("turn", base, "First, the "), provider=provider)
    assert texts(messages, provider)[-1] == marker_text(InterruptReason.CRASH)
    assert "First" not in repr(messages)


@pytest.mark.parametrize("provider", Provider)
def test_a_turn_that_was_over_is_left_alone_by_a_crash(provider: Provider) -> None:
    answered = WHOLE[provider]()[:-1]
    for messages in ([], answered):
        before = copy.deepcopy(messages)
        assert not recover_crashed_turn(messages, Draft("turn", len(messages), "late"), provider=provider)
        assert messages == before


@pytest.mark.parametrize("provider", Provider)
@pytest.mark.case("H30", "H42")
def test_a_crash_with_open_calls_answers_them_without_a_claim(provider: Provider) -> None:
    messages = cut(OPEN[provider])(WHOLE[provider]())
    assert recover_crashed_turn(messages, Draft("turn", 0), provider=provider)
    assert repr(messages).count(UNKNOWN_ANSWER) == 2
    assert check(messages, provider) == []
    again: Any = copy.deepcopy(messages)
    assert not recover_crashed_turn(messages, Draft("turn", 0), provider=provider)
    assert messages == again
