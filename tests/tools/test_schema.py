"""The parameters schema says what the function takes: from its hints, its defaults, its docstring."""

import enum
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from toolrunner.errors import ToolDefinitionError
from toolrunner.tools import Command, Tool, ToolContext, command_tool, tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Span(BaseModel):
    """A part of a file."""

    start: int
    end: int | None = None


@dataclass(frozen=True)
class Point:
    x: int
    p0: int = 0


def properties(fn: Any) -> dict[str, Any]:
    made: Tool[..., Any] = tool(fn)
    found: dict[str, Any] = made.parameters["properties"]
    return found


async def write(
    path: str, lines: list[str], mode: Literal["w", "a"] = "w", *, colour: Colour = Colour.RED, span: Span | None = None
) -> None:
    """Write lines.

    Args:
        path: Where to.
        span: Which part.
    """


def test_hints_defaults_and_docstring_make_the_schema() -> None:
    assert tool(write).parameters == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where to."},
            "lines": {"type": "array", "items": {"type": "string"}},
            "mode": {"type": "string", "enum": ["w", "a"], "default": "w"},
            "colour": {"$ref": "#/$defs/Colour", "default": "red"},
            "span": {"anyOf": [{"$ref": "#/$defs/Span"}, {"type": "null"}], "default": None, "description": "Which part."},
        },
        "required": ["path", "lines"],
        "additionalProperties": False,
        "$defs": {
            "Colour": {"title": "Colour", "type": "string", "enum": ["red", "blue"]},
            "Span": {
                "title": "Span",
                "description": "A part of a file.",
                "type": "object",
                "properties": {
                    "start": {"type": "integer"},
                    "end": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                },
                "required": ["start"],
            },
        },
    }


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    async def now() -> str:
        return ""

    assert tool(now).parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert tool(now).parse({}) == {}


def test_what_the_author_said_with_field_wins_over_the_docstring() -> None:
    def f(
        a: Annotated[int, Field(description="mine", ge=1)],
        b: int = Field(5, description="mine too", le=9),
        c: Annotated[int, Field(ge=1)] = 2,
    ) -> None:
        """Do.

        Args:
            a: theirs
            b: theirs
            c: theirs
        """

    assert properties(f) == {
        "a": {"type": "integer", "description": "mine", "minimum": 1},
        "b": {"type": "integer", "description": "mine too", "maximum": 9, "default": 5},
        "c": {"type": "integer", "description": "theirs", "minimum": 1, "default": 2},
    }
    assert tool(f).parse({"a": 1}) == {"a": 1, "b": 5, "c": 2}


def test_an_alias_is_the_name_for_the_model_and_the_parameter_for_the_function() -> None:
    def f(from_: Annotated[str, Field(alias="from")], to: str = Field("x", alias="at")) -> None: ...

    assert list(properties(f)) == ["from", "at"]
    assert tool(f).parse({"from": "a", "at": "b"}) == {"from_": "a", "to": "b"}


def test_two_parameters_cannot_share_an_alias() -> None:
    def f(a: Annotated[str, Field(alias="b")], b: str) -> None: ...

    with pytest.raises(ToolDefinitionError, match="same alias"):
        tool(f)


def test_parameters_may_have_names_that_pydantic_keeps_for_itself() -> None:
    def f(*, json: int, copy: int, schema: int, model_config: int, model_fields: int, _hidden: int, p0: int) -> None: ...

    names = ["json", "copy", "schema", "model_config", "model_fields", "_hidden", "p0"]
    assert list(properties(f)) == names
    arguments = {name: number for number, name in enumerate(names)}
    assert tool(f).parse(arguments) == arguments


def test_the_fields_of_nested_types_keep_their_names() -> None:
    def f(point: Point, second: Point | None = None) -> None: ...

    assert list(tool(f).parameters["$defs"]["Point"]["properties"]) == ["x", "p0"]
    assert tool(f).parse({"point": {"x": 1, "p0": 2}}) == {"point": Point(1, 2), "second": None}


def with_strings(ctx: "ToolContext[Any]", span: "Span | None" = None) -> "Annotated[str, Field(min_length=1)]":
    return ""


def test_annotations_in_strings_resolve() -> None:
    made = tool(with_strings)
    assert made.takes_context == "ctx"
    assert made.parse({"span": {"start": 1}}) == {"span": Span(start=1)}


def in_front(ctx: ToolContext[int], a: int) -> None: ...
def at_the_end(a: int, ctx: ToolContext[int]) -> None: ...
def bare(a: int, ctx: ToolContext) -> None: ...  # type: ignore[type-arg]
def by_keyword(*, a: int, c: ToolContext[str]) -> None: ...
def optional(a: int, ctx: ToolContext[str] | None = None) -> None: ...
def annotated(a: int, ctx: Annotated[ToolContext[str], "mine"]) -> None: ...


@pytest.mark.parametrize("fn", [in_front, at_the_end, bare, by_keyword, optional, annotated])
def test_the_context_is_found_by_its_annotation_and_never_shown(fn: Any) -> None:
    made = tool(fn)
    assert made.takes_context in {"ctx", "c"}
    assert list(made.parameters["properties"]) == ["a"]
    assert made.parse({"a": 1}) == {"a": 1}


def test_a_parameter_that_is_only_named_like_the_context_is_the_models() -> None:
    def f(ctx: str) -> None: ...

    assert tool(f).takes_context is None
    assert list(properties(f)) == ["ctx"]


def test_a_default_that_is_no_json_is_not_shown_but_used() -> None:
    marker = object()

    def f(a: Any = marker, b: Path = Path("x"), c: datetime | None = None) -> None: ...

    assert "default" not in properties(f)["a"]
    assert tool(f).parse({})["a"] is marker
    assert tool(f).parse({"b": "y", "c": "2026-01-02T03:04:05Z"})["b"] == Path("y")


def test_a_mutable_default_is_not_shared_by_calls() -> None:
    def f(a: list[int] = []) -> None: ...  # noqa: B006  # the mistake under test

    tool(f).parse({})["a"].append(1)
    assert tool(f).parse({}) == {"a": []}
    made = tool(f)
    made.parse({})["a"].append(1)
    assert made.parse({}) == {"a": []}


def test_the_schema_is_json() -> None:
    assert json.loads(json.dumps(tool(write).parameters)) == tool(write).parameters


async def not_sync(path: str) -> Command:
    return Command(("ls", path))


def with_context(ctx: ToolContext[None], path: str) -> Command:
    return Command(("ls", path))


def without_annotation(path: str):  # type: ignore[no-untyped-def]  # noqa: ANN201
    return Command(("ls", path))


@pytest.mark.parametrize(
    "fn, said",
    [
        (not_sync, "declare it with `def`"),
        (with_context, "'ctx' asks for a context, but a command is made before the call starts"),
        (without_annotation, "annotate its function with `-> Command`"),
    ],
)
def test_a_command_tool_is_a_sync_function_of_its_arguments_that_returns_a_command(fn: Any, said: str) -> None:
    with pytest.raises(ToolDefinitionError, match=said):
        command_tool(fn)
