"""Texts under a bound: what is cut, what never is."""

import re
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from results.legal import result, results, said

from toolrunner.facts import Image, Json, Text
from toolrunner.results import Code, Ended, Error, Outcome, ToolResult, plain_text
from toolrunner.results.content import cut


def counted(content: Any) -> int:
    return len(plain_text([part for part in content if isinstance(part, Text | Json)]))


@given(one=results(), limit=st.integers(0, 400))
def test_the_bound_holds_and_the_status_is_never_cut(one: ToolResult, limit: int) -> None:
    one = replace(one, error=None, content=(*one.content, Text("x" * 120), Json(["y" * 90])))
    status = one.content_for_model()[len(one.content) :]
    bounded = one.content_for_model(limit)
    assert counted(bounded) <= max(limit, counted(status))
    assert bounded[len(bounded) - len(status) :] == status
    assert [part for part in bounded if isinstance(part, Image)] == [part for part in one.content if isinstance(part, Image)]


@given(limit=st.integers(0, 400), length=st.integers(1, 400), error=st.booleans())
def test_the_bound_holds_with_a_long_error_too(limit: int, length: int, error: bool) -> None:
    facts: dict[str, Any] = {
        "outcome": Outcome.FAILED,
        "code": Code.TOOL_ERROR,
        "ended": Ended.RAISED,
        "content": (Text("x" * length),),
    }
    without = result(**facts).content_for_model()[-1]
    one = result(**facts, error=Error("x", "e" * (400 - length) if error else ""))
    bounded = one.content_for_model(limit)
    assert counted(bounded) <= max(limit, counted((without,)))
    assert said(one).startswith("x" * length + " The call failed")
    assert str(bounded[-1]).count("It may have taken effect; check before you repeat it.") == 1


@given(one=results())
def test_a_bound_with_room_for_all_changes_nothing(one: ToolResult) -> None:
    full = one.content_for_model()
    assert one.content_for_model(counted(full)) == full
    assert one.content_for_model(10**6) == full


@given(length=st.integers(1, 3000), limit=st.integers(0, 3000))
def test_a_cut_text_fits_and_says_exactly_what_is_left_out(length: int, limit: int) -> None:
    text = "".join(chr(0x100 + n % 5000) for n in range(length))
    shown = cut(text, limit)
    assert len(shown) <= limit
    if shown not in ("", text):
        match = re.search(r"\n\[\.\.\. (\d+) characters left out \.\.\.\]\n", shown)
        assert match
        assert len(shown) - len(match.group()) + int(match.group(1)) == len(text)
        assert text.startswith(shown[: match.start()])
        assert text.endswith(shown[match.end() :])


def test_a_short_error_output_survives_a_long_output() -> None:
    one = result(content=(Text("o" * 10_000), Text("[stderr]\nboom")))
    first, second = one.content_for_model(500)
    assert second == Text("[stderr]\nboom")
    assert isinstance(first, Text)
    assert first.text.startswith("o" * 100)
    assert first.text.endswith("o" * 100)
    assert 480 <= counted((first, second)) <= 500


def test_a_long_error_is_cut_like_content_and_what_is_true_of_the_call_is_not() -> None:
    one = result(outcome=Outcome.FAILED, code=Code.TOOL_ERROR, ended=Ended.RAISED, error=Error("x", "a" * 5000 + "z" * 5000))
    (status,) = one.content_for_model(300)
    assert isinstance(status, Text)
    assert len(status.text) <= 300
    assert status.text.startswith("The call failed: aaa")
    assert "zzz. It may have taken effect; check before you repeat it." in status.text
    assert "characters left out" in status.text
