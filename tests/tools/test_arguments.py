"""Arguments that do not fit are refused with a message from which a model can correct itself."""

from types import MappingProxyType
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, JsonValue

from toolrunner.tools import InvalidArguments, tool


class Part(BaseModel, extra="forbid"):
    start: int
    kind: Literal["line", "word"] = "line"


def even(number: int) -> int:
    if number % 2:
        raise ValueError("must be even")
    return number


def broken(number: int) -> int:
    raise KeyError(number)


@tool
def edit(path: str, parts: list[Part], count: int | None = None, step: Annotated[int, AfterValidator(even)] = 2) -> None:
    """Edit."""


def said(arguments: Any, on: Any = edit) -> str:
    with pytest.raises(InvalidArguments) as found:
        on.parse(arguments)
    assert found.value.message == str(found.value)
    return found.value.message


NO_INTEGER = "expected a valid integer, unable to parse string as an integer"


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"parts": []}, "path: missing, expected string"),
        ({"path": "a"}, "parts: missing, expected array of object"),
        ({"path": 5, "parts": []}, "path: got 5, expected a valid string"),
        ({"path": "a", "parts": [], "step": 3}, "step: got 3, must be even"),
        ({"path": "a", "parts": [], "cuont": 3}, "'cuont': no such parameter, did you mean 'count'?"),
        ({"path": "a", "parts": [], "zzz": 3}, "'zzz': no such parameter, expected only 'path', 'parts', 'count', 'step'"),
        ({"path": "a", "parts": [{"start": 1}, {"start": 1, "strat": 2}]}, "parts[1].strat: no such field"),
        ({"path": "a", "parts": [{"start": 1, "kind": "page"}]}, "parts[0].kind: got 'page', expected 'line' or 'word'"),
        ([], "got []; expected an object with only 'path', 'parts', 'count', 'step'"),
        (None, "got None; expected an object with only 'path', 'parts', 'count', 'step'"),
        (
            {"path": None, "count": "many"},
            "path: got None, expected a valid string; parts: missing, expected array of object; count: got 'many', " + NO_INTEGER,
        ),
    ],
)
def test_the_message_names_each_bad_field_its_value_and_what_is_expected(arguments: Any, message: str) -> None:
    assert said(arguments) == message


def test_a_tool_without_parameters_says_so() -> None:
    @tool
    def now() -> None: ...

    assert said({"a": 1}, now) == "'a': no such parameter, expected no arguments"


def test_a_huge_value_is_shortened() -> None:
    message = said({"path": ["x" * 1_000_000] * 1000, "parts": []})
    assert message.startswith("path: got ['xxx")
    assert len(message) < 300


def test_a_field_far_down_is_named_in_short() -> None:
    @tool
    def take(value: JsonValue) -> None: ...

    value: Any = object()
    for _ in range(100):
        value = [value]
    assert len(said({"value": value}, take)) < 400


def test_many_problems_are_counted_not_listed() -> None:
    message = said({"path": "a", "parts": ["x"] * 1000})
    assert message.endswith("; and 992 more")
    assert len(message) < 1500


def test_a_long_unknown_name_is_shortened() -> None:
    assert len(said({"path": "a", "parts": [], "c" * 100_000: 1})) < 300


def test_arguments_nested_deeper_than_the_stack_are_refused() -> None:
    @tool
    def take(value: JsonValue) -> None: ...

    value: Any = None
    for _ in range(5_000):
        value = [value]
    assert said({"value": value}, take)


def test_a_validator_that_breaks_refuses_the_arguments() -> None:
    @tool
    def f(a: Annotated[int, AfterValidator(broken)]) -> None: ...

    assert said({"a": 5}, f) == "the arguments could not be checked: 5"


def test_a_value_whose_repr_raises_is_named_by_its_type() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError

    assert said({"path": Hostile(), "parts": []}) == "path: got <Hostile>, expected a valid string"


def test_numbers_in_text_are_read_as_numbers() -> None:
    assert edit.parse({"path": "a", "parts": [], "count": "3"})["count"] == 3


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@tool
def take(value: JsonValue, anything: Any) -> None:
    """Take JSON."""


def frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return MappingProxyType({key: frozen(one) for key, one in value.items()})
    return tuple(frozen(one) for one in value) if isinstance(value, list) else value


@given(JSON)
def test_frozen_arguments_arrive_as_the_json_they_were(value: Any) -> None:
    assert take.parse(frozen({"value": value, "anything": value})) == {"value": value, "anything": value}


def test_a_body_cannot_change_what_was_recorded() -> None:
    recorded: dict[str, Any] = {"value": None, "anything": {"list": [1]}}
    take.parse(recorded)["anything"]["list"].append(2)
    assert recorded == {"value": None, "anything": {"list": [1]}}


@given(st.dictionaries(st.sampled_from(["path", "parts", "count", "step", "other", ""]) | st.text(), JSON))
def test_arguments_are_read_or_refused_and_nothing_else(arguments: dict[str, Any]) -> None:
    try:
        parsed = edit.parse(arguments)
    except InvalidArguments:
        return
    assert set(parsed) == {"path", "parts", "count", "step"}
