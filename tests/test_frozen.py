"""Arguments that nobody can change: read once, without loss or not at all."""

import copy
import enum
import json
import math
import pickle
from collections import OrderedDict, UserDict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, TypeAdapter

from toolrunner.facts.frozen import MAX_DEPTH, FreezeError, FrozenDict, FrozenList, freeze, freeze_arguments

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=20
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=4)


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Half(float, enum.Enum):
    VALUE = 0.5


class Loud(str):
    __slots__ = ()


def containers(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value, *(inner for item in value.values() for inner in containers(item))]
    if isinstance(value, list):
        return [value, *(inner for item in value for inner in containers(item))]
    return []


@given(value=OBJECTS)
def test_what_is_frozen_is_equal_in_every_part_and_in_json(value: dict[str, Any]) -> None:
    frozen = freeze_arguments(value)
    assert frozen == value
    assert json.dumps(frozen) == json.dumps(value)
    assert json.loads(json.dumps(frozen)) == frozen
    assert all(type(one) in (FrozenDict, FrozenList) for one in containers(frozen))
    assert TypeAdapter(JsonValue).validate_python(frozen) == value
    assert TypeAdapter(dict[str, Any]).dump_json(frozen) == TypeAdapter(dict[str, Any]).dump_json(value)


@given(value=OBJECTS)
def test_what_is_frozen_has_nothing_of_the_original(value: dict[str, Any]) -> None:
    before = copy.deepcopy(value)
    frozen = freeze_arguments(value)
    for one in containers(value):
        one.clear()
    assert frozen == before


@given(value=OBJECTS)
def test_freezing_twice_changes_nothing(value: dict[str, Any]) -> None:
    assert freeze_arguments(freeze_arguments(value)) == value


CHANGES: dict[str, Callable[[Any], object]] = {
    "set": lambda one: one.__setitem__("a", 2),
    "del": lambda one: one.__delitem__("a"),
    "clear": lambda one: one.clear(),
    "pop": lambda one: one.pop("a"),
    "popitem": lambda one: one.popitem(),
    "setdefault": lambda one: one.setdefault("b", 1),
    "update": lambda one: one.update(b=1),
    "ior": lambda one: one.__ior__({"b": 1}),
}
LIST_CHANGES: dict[str, Callable[[Any], object]] = {
    "set": lambda one: one.__setitem__(0, 9),
    "slice": lambda one: one.__setitem__(slice(None), []),
    "del": lambda one: one.__delitem__(0),
    "iadd": lambda one: one.__iadd__([1]),
    "imul": lambda one: one.__imul__(2),
    "append": lambda one: one.append(1),
    "clear": lambda one: one.clear(),
    "extend": lambda one: one.extend([1]),
    "insert": lambda one: one.insert(0, 1),
    "pop": lambda one: one.pop(),
    "remove": lambda one: one.remove(1),
    "reverse": lambda one: one.reverse(),
    "sort": lambda one: one.sort(),
}


@pytest.mark.case("T15")
@pytest.mark.parametrize("change", CHANGES)
def test_an_object_refuses_every_change(change: str) -> None:
    frozen = freeze_arguments({"a": 1})
    with pytest.raises(TypeError, match="copy them to change them"):
        CHANGES[change](frozen)
    assert frozen == {"a": 1}


@pytest.mark.parametrize("change", LIST_CHANGES)
def test_a_list_refuses_every_change(change: str) -> None:
    frozen = freeze([1, 2], "x")
    with pytest.raises(TypeError, match="copy them to change them"):
        LIST_CHANGES[change](frozen)
    assert frozen == [1, 2]


def test_no_changing_method_was_forgotten() -> None:
    unchanging = {
        dict: {"copy", "fromkeys", "get", "items", "keys", "values"},
        list: {"copy", "count", "index"},
    }
    for kind, frozen in ((dict, FrozenDict), (list, FrozenList)):
        for name in vars(kind):
            changes = not name.startswith("_") or name in ("__setitem__", "__delitem__", "__iadd__", "__imul__", "__ior__")
            if changes and name not in unchanging[kind]:
                assert name in vars(frozen), f"{kind.__name__}.{name}"


@given(value=OBJECTS)
def test_a_copy_may_be_changed_and_leaves_the_original(value: dict[str, Any]) -> None:
    frozen = freeze_arguments({"inner": value, "list": [1]})
    for copied in (copy.deepcopy(frozen), pickle.loads(pickle.dumps(frozen)), json.loads(json.dumps(frozen))):  # noqa: S301 - our own
        assert copied == frozen
        assert all(type(one) in (dict, list) for one in containers(copied))
        copied["list"].append(2)
        copied["inner"].clear()
    shallow = copy.copy(frozen)
    shallow["more"] = 1
    assert frozen == {"inner": value, "list": [1]}
    assert {**frozen}["list"] is frozen["list"]


def test_a_dataclass_that_holds_it_can_be_taken_apart() -> None:
    @dataclass(frozen=True)
    class Call:
        arguments: dict[str, Any]

    assert asdict(Call(freeze_arguments({"a": [{"b": 1}]}))) == {"arguments": {"a": [{"b": 1}]}}


@pytest.mark.parametrize(
    "value", [{"a": (1, 2)}, OrderedDict(a=[1, 2]), MappingProxyType({"a": [1, 2]}), UserDict({"a": (1, 2)})]
)
def test_other_mappings_and_tuples_become_plain(value: Any) -> None:
    assert freeze_arguments(value) == {"a": [1, 2]}


@pytest.mark.parametrize("value", [None, [], "{}", 3, [("a", 1)], {1}, b"{}"])
def test_arguments_are_an_object(value: Any) -> None:
    with pytest.raises(FreezeError, match="expected an object"):
        freeze_arguments(value)


@pytest.mark.case("T16")
@pytest.mark.parametrize(
    "value, problem",
    [
        (math.nan, r"arguments\.a is nan"),
        (math.inf, r"arguments\.a is inf"),
        (-math.inf, r"arguments\.a is -inf"),
        (Colour.RED, "a Colour, which JSON cannot say"),
        (Level.LOW, "a Level, which JSON cannot say"),
        (Half.VALUE, "a Half, which JSON cannot say"),
        (Loud("x"), "a Loud, which JSON cannot say"),
        (b"x", "a bytes"),
        ({1, 2}, "a set"),
        (object(), "an? object"),
        (1 + 2j, "a complex"),
        ("\ud800", r"arguments\.a holds a lone surrogate"),
        ({"\udfff": 1}, "a key of .* lone surrogate"),
        ({1: 2}, "has the key 1; JSON keys are strings"),
        ({True: 2}, "has the key True"),
        ({None: 2}, "has the key None"),
        ({Colour.RED: 2}, "has the key"),
        pytest.param(10**10_000, "more than .* digits", id="10,001 digits"),
        ([[0, [math.nan]]], r"arguments\.a\[0\]\[1\]\[0\] is nan"),
        ({"b": [{"c": b""}]}, r"arguments\.a\.b\[0\]\.c is a bytes"),
    ],
)
def test_what_json_cannot_say_exactly_is_refused_by_its_place(value: Any, problem: str) -> None:
    with pytest.raises(FreezeError, match=problem):
        freeze_arguments({"a": value})


@pytest.mark.parametrize("value", ["😀", "\x00\x1f\x7f", "\u2028", "", -0.0, 5e-324, 1.7976931348623157e308, 2**64, -(10**600)])
def test_what_is_odd_but_exact_is_kept(value: Any) -> None:
    frozen = freeze_arguments({"a": value})
    again = json.loads(json.dumps(frozen))["a"]
    assert again == value
    assert type(again) is type(value)
    assert math.copysign(1, again) == math.copysign(1, value) if isinstance(value, float) else True


def nested(depth: int, *, lists: bool) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if lists else {"a": value}
    return value


@pytest.mark.parametrize("lists", [True, False])
def test_nesting_is_bounded_exactly(lists: bool) -> None:
    deepest = freeze_arguments({"a": nested(MAX_DEPTH - 1, lists=lists)})
    assert json.loads(json.dumps(deepest)) == deepest
    for depth in (MAX_DEPTH, 100_000):
        with pytest.raises(FreezeError, match=f"deeper than {MAX_DEPTH} levels"):
            freeze_arguments({"a": nested(depth, lists=lists)})


def test_a_value_inside_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(FreezeError, match="deeper"):
        freeze_arguments({"a": loop})
