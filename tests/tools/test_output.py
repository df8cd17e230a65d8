"""What a body returned becomes JSON and content, or a message that says why it cannot; nothing is dropped on the way."""

import asyncio
import datetime as dt
import decimal
import enum
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel

from toolrunner.facts import Content, File, Image, Json, Text
from toolrunner.results import Error
from toolrunner.tools import Command, InvalidOutput, Reply, tool


class Model(BaseModel):
    a: int
    inner: list["Model"] = []


@dataclass
class Point:
    x: int


class Colour(str, enum.Enum):  # noqa: UP042  # the form whose str() is not its value
    RED = "red"


def returning(hint: Any) -> Callable[[object], Reply]:
    def f() -> None: ...

    f.__annotations__["return"] = hint
    return tool(f).dump


def unannotated():  # type: ignore[no-untyped-def]  # noqa: ANN201
    """Say nothing of what is returned."""


dump = tool(unannotated).dump


@pytest.mark.parametrize(
    "returned, reply",
    [
        (None, Reply()),
        ("text", Reply("text", (Text("text"),))),
        ("", Reply("", (Text(""),))),
        (5, Reply(5, (Json(5),))),
        (False, Reply(False, (Json(False),))),
        ([], Reply([], (Json([]),))),
        ({"a": [1, None]}, Reply({"a": [1, None]}, (Json({"a": [1, None]}),))),
        (Text("t"), Reply(content=(Text("t"),))),
        ([Text("t"), Image("aGk=", "image/png")], Reply(content=(Text("t"), Image("aGk=", "image/png")))),
        ((Json({"a": 1}), File("aGk=", "text/plain", "n")), Reply(content=(Json({"a": 1}), File("aGk=", "text/plain", "n")))),
        (Model(a=1, inner=[Model(a=2)]), None),
        (Point(3), Reply({"x": 3}, (Json({"x": 3}),))),
        ([Point(3)], Reply([{"x": 3}], (Json([{"x": 3}]),))),
        (Path("/a/b"), Reply("/a/b", (Text("/a/b"),))),
        (Colour.RED, Reply("red", (Text("red"),))),
        (dt.date(2026, 1, 2), Reply("2026-01-02", (Text("2026-01-02"),))),
        (frozenset({7}), Reply([7], (Json([7]),))),
        (decimal.Decimal("1.50"), Reply("1.50", (Text("1.50"),))),
        (b"bytes", Reply("bytes", (Text("bytes"),))),
        ({1: "a"}, Reply({"1": "a"}, (Json({"1": "a"}),))),
    ],
)
def test_a_returned_value_is_dumped_to_value_and_content(returned: object, reply: Reply | None) -> None:
    if reply is None:
        value: Any = {"a": 1, "inner": [{"a": 2, "inner": []}]}
        reply = Reply(value, (Json(value),))
    assert dump(returned) == reply


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def deep() -> Any:
    value: Any = None
    for _ in range(5_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "returned, said",
    [
        (object(), "cannot be JSON: Unable to serialize unknown type"),
        (math.nan, "cannot be JSON"),
        ({"a": [math.inf]}, "cannot be JSON"),
        (b"\xff", "cannot be JSON"),
        (cyclic(), "cannot be JSON: Circular reference"),
        (deep(), "cannot be JSON"),
        ([10**5000], "cannot be JSON"),
        ("\udcff", "lone surrogate"),
        ({"a": "\udcff"}, "lone surrogate"),
        ([Text("t"), 5], "content holds 5; expected Text, Image, File or Json"),
        (Text(5), "value.*text.*valid string"),  # type: ignore[arg-type]
        ([Text("\udcff")], "lone surrogate"),
        (Json(math.nan), "cannot be JSON"),
        (Command(("ls",)), "a Command, which was not run"),
        ((one for one in (1, 2)), "a generator, whose code has not run"),
    ],
)
def test_what_cannot_be_json_is_invalid_output(returned: object, said: str) -> None:
    with pytest.raises(InvalidOutput, match=said) as found:
        dump(returned)
    assert len(found.value.message) < 400


def test_a_coroutine_that_nobody_awaited_is_invalid_output_and_leaves_no_warning() -> None:
    async def later() -> int:
        return 1

    with pytest.raises(InvalidOutput, match="declare the tool with `async def`"):
        dump(later())


def test_a_future_is_invalid_output() -> None:
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(InvalidOutput, match="an awaitable instead of a value"):
            dump(loop.create_future())
    finally:
        loop.close()


@pytest.mark.parametrize(
    "hint, returned, said",
    [
        (int, "x", "returned 'x', which its return annotation does not allow: value: expected a valid integer"),
        (dict[str, int], {"a": "x"}, r"value.a: expected a valid integer"),
        (None, 5, "value: expected None"),
        (str, Text("t"), "value: expected a valid string"),
        (list[Text], ["x"], r"value\[0\]"),
        (Model, {"b": 1}, "value.a: field required"),
        (Reply, 5, "value"),
    ],
)
def test_a_value_that_the_return_annotation_does_not_allow_is_invalid_output(hint: Any, returned: object, said: str) -> None:
    with pytest.raises(InvalidOutput, match=said):
        returning(hint)(returned)


@pytest.mark.parametrize(
    "hint, returned, value",
    [
        (int, 5, 5),
        (None, None, None),
        (Any, {"a": 1}, {"a": 1}),
        (object, 5, 5),
        (Model, Model(a=1), {"a": 1, "inner": []}),
        (list[Model] | None, None, None),
        (set[int], {3}, [3]),
        (Path, Path("x"), "x"),
    ],
)
def test_a_value_that_the_return_annotation_allows_is_dumped(hint: Any, returned: object, value: Any) -> None:
    assert returning(hint)(returned).value == value


@pytest.mark.parametrize(
    "hint, returned",
    [
        (Text, Text("t")),
        (Content, Text("t")),
        (Text | str, Text("t")),
        (list[Content], [Text("t")]),
        (Sequence[Text | Image], [Text("t")]),
        (tuple[Text, ...], (Text("t"),)),
        (Reply | str, Reply(content=(Text("t"),))),
        (Reply, Reply(content=(Text("t"),))),
    ],
)
def test_content_may_be_annotated(hint: Any, returned: object) -> None:
    assert returning(hint)(returned) == Reply(content=(Text("t"),))


def test_an_annotation_check_of_the_tools_own_that_breaks_is_invalid_output() -> None:
    def broken(value: int) -> int:
        raise KeyError(value)

    with pytest.raises(InvalidOutput, match="could not be checked: 5"):
        returning(Annotated[int, AfterValidator(broken)])(5)


def test_a_serialiser_of_the_tools_own_that_breaks_is_invalid_output() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    with pytest.raises(InvalidOutput, match="<Hostile>"):
        dump(Hostile())


def test_a_reply_keeps_its_parts() -> None:
    error = Error("mine", "half of it failed")
    dumped = dump(Reply(Model(a=1), [Text("shown")], [{"b": Path("x")}], error))  # type: ignore[arg-type, dict-item]
    assert dumped == Reply({"a": 1, "inner": []}, (Text("shown"),), ({"b": "x"},), error)


def test_a_reply_with_a_value_and_no_content_shows_the_value() -> None:
    assert dump(Reply({"a": 1})).content == (Json({"a": 1}),)
    assert dump(Reply("text")).content == (Text("text"),)
    assert dump(Reply("text", [Text("")])).content == (Text(""),)
    assert dump(Reply("text", error=Error("k", "m"))).content == ()


@pytest.mark.parametrize(
    "reply, said",
    [
        (Reply(object()), "cannot be JSON"),  # type: ignore[arg-type]
        (Reply(follow_up=[math.nan]), "cannot be JSON"),
        (Reply(follow_up="abc"), "Reply.follow_up is 'abc'; expected a sequence of values"),
        (Reply(follow_up=5), "Reply.follow_up is 5"),  # type: ignore[arg-type]
        (Reply(content=["x"]), "content holds 'x'"),  # type: ignore[list-item]
        (Reply(content="x"), "content holds 'x'"),  # type: ignore[arg-type]
        (Reply(error="bad"), "Reply.error is 'bad'; expected a results.Error or None"),  # type: ignore[arg-type]
    ],
)
def test_a_reply_that_is_wrong_in_one_part_is_invalid_output(reply: Reply, said: str) -> None:
    with pytest.raises(InvalidOutput, match=said):
        dump(reply)


def test_one_piece_of_content_in_a_reply_needs_no_list() -> None:
    assert dump(Reply(content=Text("t"))).content == (Text("t"),)  # type: ignore[arg-type]


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_json_is_dumped_as_it_is_and_what_is_dumped_is_json(value: Any) -> None:
    dumped = dump(value)
    assert dumped.value == value
    assert json.loads(json.dumps(dumped.value, allow_nan=False)) == dumped.value


@given(
    st.recursive(
        st.floats() | st.text(st.characters()) | st.binary() | JSON, lambda inner: st.lists(inner, max_size=3), max_leaves=5
    )
)
def test_whatever_is_returned_is_dumped_or_refused(value: Any) -> None:
    try:
        dumped = dump(value)
    except InvalidOutput:
        return
    json.dumps(dumped.value, allow_nan=False, ensure_ascii=False).encode()


def test_the_dumped_value_is_a_copy() -> None:
    returned = {"a": [1]}
    dumped = dump(returned)
    returned["a"].append(2)
    assert dumped.value == {"a": [1]}
