"""Crash drafts: what is in the file, what is not, and what a file that is no draft is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.history import Draft, UnreadableDraft, draft_from_json, draft_to_json
from toolrunner.history.drafts import MAX_BYTES, capped, draft_fits


@given(st.builds(Draft, st.text(), st.integers(0, 10**9), st.text(), st.text()))
def test_a_draft_that_was_written_is_read_again(draft: Draft) -> None:
    clean = Draft(sayable(draft.turn_id), draft.base, sayable(draft.text), sayable(draft.response))
    assert draft_from_json(draft_to_json(draft)) == clean


def sayable(text: str) -> str:
    return text.encode(errors="replace").decode()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"turn_id":"t"}', b'{"turn_id":"t","base":"7"}', b'{"turn_id":"t","base":7,"text":', b"\xff"],
)
def test_what_is_no_draft_is_an_error_and_never_a_draft(content: bytes) -> None:
    with pytest.raises(UnreadableDraft, match="cannot be read"):
        draft_from_json(content)


@given(st.sampled_from(["a", "é", "€", "🙂", "e\u0301"]), st.integers(-3, 3))
def test_a_long_text_is_cut_between_two_characters(letter: str, more: int) -> None:
    text = "x" * (more % 4) + letter * (MAX_BYTES // len(letter.encode()) + more)
    kept = capped(text)
    assert len(kept.encode()) <= MAX_BYTES
    assert text.startswith(kept)
    assert kept == text or len(kept.encode()) > MAX_BYTES - 4
    assert len(draft_from_json(draft_to_json(Draft("t", 0).with_text(text))).text) == len(kept)


def test_a_draft_of_another_turn_or_another_end_of_the_log_does_not_fit() -> None:
    assert draft_fits(Draft("t", 7), "t", 7)
    assert not draft_fits(Draft("t", 7), "t", 8)
    assert not draft_fits(Draft("t", 7), "u", 7)
