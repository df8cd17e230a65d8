"""Markers and notes: exact texts, recognised exactly, instructing nobody."""

import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolrunner.errors import ConfigError
from toolrunner.facts import Source
from toolrunner.markers import (
    CANCEL_PHRASES,
    EARLIER_LEFT_OUT,
    INSTRUCTION_WORDS,
    LATE_EFFECTS,
    LATE_ENDS,
    MARKERS,
    UNRECOGNISED_TOOL,
    InterruptReason,
    compacted_note,
    instruction_words,
    interrupt_reason,
    interruption_label,
    is_compacted_note,
    is_host_text,
    is_interruption_marker,
    is_late_result_note,
    is_tool_in_flight_note,
    late_result_note,
    marker_reason,
    marker_text,
    tool_in_flight_note,
    tool_in_flight_note_label,
)

TEXTS = {
    InterruptReason.USER: "[Request interrupted by user]",
    InterruptReason.COST: "[Request interrupted: cost cap reached]",
    InterruptReason.RESTART: "[Request interrupted: runner restarted]",
    InterruptReason.HOST: "[Request interrupted: stopped by the host]",
    InterruptReason.OWNER: "[Request interrupted: owner revoked]",
    InterruptReason.CRASH: "[Request interrupted: runner stopped unexpectedly]",
    InterruptReason.UNKNOWN: "[Request interrupted]",
}
NAMES = st.from_regex(r"[A-Za-z0-9_.:-]{1,128}", fullmatch=True)
ODD_NAMES = st.sampled_from(["a`b", "a\nb", "x" * 129, "", "a, `b"])
SOME_NAMES = st.lists(NAMES | st.text(max_size=20) | ODD_NAMES, min_size=1, max_size=4)


@pytest.mark.parametrize("reason", InterruptReason)
def test_every_marker_is_the_decided_text_and_known_by_it(reason: InterruptReason) -> None:
    text = marker_text(reason)
    assert text == TEXTS[reason]
    assert is_interruption_marker(text)
    assert interruption_label(text) == text[1:-1] == CANCEL_PHRASES[reason]
    assert marker_reason(text) is reason
    assert is_host_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Request interrupted by user",
        "[Request interrupted by user] ",
        " [Request interrupted by user]",
        "[Request interrupted by user]\n",
        "[Request interrupted by User]",
        "[Request interrupted by user] what does this line mean?",
        "[Request interrupted: because I said so]",
        "[Request interrupted",
        "[Turn interrupted: by user]",
        None,
        ["[Request interrupted by user]"],
        {"type": "text", "text": "[Request interrupted by user]"},
    ],
)
def test_what_only_looks_like_a_marker_is_its_authors_own(text: object) -> None:
    assert not is_interruption_marker(text)
    assert interruption_label(text) is None
    assert not is_host_text(text)


@given(st.sampled_from(sorted(MARKERS)), st.data())
def test_a_marker_with_one_character_changed_is_none(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.characters().filter(lambda it: it != text[place]))
    assert not is_interruption_marker(text[:place] + letter + text[place + 1 :])


def host_texts() -> list[str]:
    notes = [tool_in_flight_note(reason, ["shell", "a`b"]) for reason in InterruptReason]
    late = [late_result_note("shell", end, effects) for end, effects in itertools.product(LATE_ENDS, LATE_EFFECTS)]
    return [*sorted(MARKERS), EARLIER_LEFT_OUT, *notes, *late, compacted_note(["shell", "a`b"])]


@pytest.mark.parametrize("text", host_texts())
def test_no_text_of_the_host_instructs_or_addresses_anybody(text: str) -> None:
    assert instruction_words(text) == ()
    assert re.fullmatch(r"\[[^\n\[\]]+\]", text)
    assert text.isascii()


def test_the_deny_list_finds_what_it_lists() -> None:
    assert instruction_words("Please continue where YOU stopped") == ("please", "continue", "you")
    assert instruction_words("your youth") == ("your",)
    assert all(instruction_words(word) == (word,) for word in INSTRUCTION_WORDS)


@pytest.mark.parametrize("text", sorted(MARKERS))
def test_no_marker_mentions_tools_or_notes(text: str) -> None:
    assert not re.search(r"tool|note|call", text)


@pytest.mark.parametrize(
    "source, reason",
    [
        (Source.CALLER, InterruptReason.USER),
        (Source.APPROVER, InterruptReason.USER),
        (Source.HOOK, InterruptReason.USER),
        (Source.PARENT, InterruptReason.USER),
        ("wrapper:budget", InterruptReason.USER),
        (Source.COST, InterruptReason.COST),
        (Source.SHUTDOWN, InterruptReason.HOST),
        (Source.HOST, InterruptReason.HOST),
        (Source.TIMEOUT, InterruptReason.HOST),
        (Source.PEER_DISCONNECTED, InterruptReason.OWNER),
        ("something new", InterruptReason.HOST),
    ],
)
def test_who_stopped_a_turn_decides_its_marker(source: str, reason: InterruptReason) -> None:
    assert interrupt_reason(source) is reason


def test_every_source_of_an_abort_has_a_reason_of_its_own_kind() -> None:
    """A live stop is never called a crash, a restart or unknown: those are found at load."""
    live = {interrupt_reason(source) for source in Source}
    assert live == {InterruptReason.USER, InterruptReason.COST, InterruptReason.HOST, InterruptReason.OWNER}


def test_a_note_names_the_tools_and_only_says_that_they_may_have_started() -> None:
    note = tool_in_flight_note(InterruptReason.USER, ["shell", "fs.write", "a`b"])
    assert note == f"[Request interrupted by user; `shell`, `fs.write`, {UNRECOGNISED_TOOL} may have already started]"
    assert is_tool_in_flight_note(note)
    assert tool_in_flight_note_label(note) == note[1:-1]
    assert not is_interruption_marker(note)


@pytest.mark.parametrize("name", ["", "a`b", "a\nb", "a b", "x" * 129, "é", "`", "a]b", "a, `b"])
def test_a_name_that_could_be_anything_is_not_shown(name: str) -> None:
    assert tool_in_flight_note(InterruptReason.COST, [name]) == (
        "[Request interrupted: cost cap reached; an unrecognised tool may have already started]"
    )


def test_a_note_about_no_tool_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one tool"):
        tool_in_flight_note(InterruptReason.USER, [])


@given(st.sampled_from(InterruptReason), SOME_NAMES)
def test_every_generated_note_is_recognised(reason: InterruptReason, tools: list[str]) -> None:
    note = tool_in_flight_note(reason, tools)
    assert is_tool_in_flight_note(note)
    assert "\n" not in note
    assert is_host_text(note)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[Request interrupted by user; `shell` may have already started] now",
        "[Request interrupted by user; shell may have already started]",
        "[Request interrupted by user; `shell`,`b` may have already started]",
        "[Request interrupted by user; `shell` has already started]",
        "[Request interrupted by a friend; `shell` may have already started]",
        "[Request interrupted by user; `rm -rf` may have already started]",
        "[Request interrupted by user;  may have already started]",
        "[Request interrupted by user; `shell` and you may have already started]",
        f"[Request interrupted by user; `{'x' * 129}` may have already started]",
        "[Request interrupted by user; `she\nll` may have already started]",
        None,
        7,
    ],
)
def test_a_near_miss_is_no_note(text: object) -> None:
    assert not is_tool_in_flight_note(text)
    assert tool_in_flight_note_label(text) is None


@given(st.sampled_from(InterruptReason), NAMES, st.data())
def test_a_note_with_one_character_more_is_none_unless_it_is_another_note(
    reason: InterruptReason, name: str, data: st.DataObject
) -> None:
    note = tool_in_flight_note(reason, [name])
    place = data.draw(st.integers(0, len(note)))
    changed = note[:place] + data.draw(st.characters()) + note[place:]
    # Only a longer name of a tool can be the word of the host again; nothing free can be slipped in.
    if is_tool_in_flight_note(changed):
        assert re.fullmatch(r"\[[^`]+; `[A-Za-z0-9_.:-]{2,128}` may have already started\]", changed)


@given(NAMES | st.sampled_from(["a`b", ""]), st.sampled_from(sorted(LATE_ENDS)), st.sampled_from(sorted(LATE_EFFECTS)))
def test_every_note_about_a_late_result_is_recognised(name: str, ended: str, effects: str) -> None:
    note = late_result_note(name, ended, effects)
    assert is_late_result_note(note)
    assert is_host_text(note)
    assert not is_tool_in_flight_note(note)


@given(st.text())
@example("[Late result of `shell`: it came to its end; all is well]")
@example("[Late result of shell: it came to its end; it changed nothing]")
@example("[Late result of `a b`: it came to its end; it changed nothing]")
def test_nothing_else_is_a_note_about_a_late_result(text: str) -> None:
    assert not is_late_result_note(text)


@given(SOME_NAMES)
def test_a_note_about_what_a_summary_stands_for_is_recognised(tools: list[str]) -> None:
    assert is_compacted_note(compacted_note(tools))
    assert is_host_text(compacted_note(tools))
    assert not is_compacted_note(compacted_note(tools) + " ")


def test_a_late_result_says_what_is_known_and_no_more() -> None:
    assert late_result_note("shell", "returned", "completed") == (
        "[Late result of `shell`: it came to its end; its change was made]"
    )
    assert "made" not in late_result_note("shell", "returned", "assumed")
    assert "not known" in late_result_note("shell", "stopped", "unknown")
