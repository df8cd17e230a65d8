"""Reads JSON Lines of calls. Untrusted input: each line is a call, or is told by its number what is wrong with it. No state.

Only what makes it impossible to say which call is meant is malformed. Bad arguments are not: such a call has an id and a name,
and gets a result like any other.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, final

from toolrunner.calls import ToolCall
from toolrunner.cli.json_words import why_no_json

_FIELDS = ("call_id", "name", "arguments", "idempotency_key")


@final
@dataclass(frozen=True, slots=True)
class Malformed:
    """Line `line` (from 1) is no call."""

    line: int
    error: str

    def to_json(self) -> str:
        """The line of output that stands in the place of a result."""
        return json.dumps({"line": self.line, "error": self.error}, ensure_ascii=False, separators=(",", ":"))


@final
@dataclass(frozen=True, slots=True)
class Numbered:
    """What line `line` (from 1) says."""

    line: int
    item: ToolCall | Malformed


def read_calls(content: bytes) -> Iterator[Numbered]:
    """One call for each line that is not blank, in order."""
    # Split at line feeds only: U+2028 and the like may stand in a JSON string.
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            try:
                yield Numbered(number, _call(line))
            except (ValueError, RecursionError) as error:
                yield Numbered(number, Malformed(number, _told(error)))


def _told(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"not JSON: {why_no_json(error, one_line=True)}"
        case UnicodeDecodeError():
            return f"not UTF-8: byte {error.start + 1} of the line"
        case RecursionError():
            return "not usable JSON: nested too deeply"
        case ValueError() if "integer string conversion" in str(error):  # of CPython, which tells how to lift its own limit
            return f"not usable JSON: a number of more than {sys.get_int_max_str_digits():,} digits"
        case _:
            return str(error)


def _call(line: bytes) -> ToolCall:
    item = json.loads(line.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    if not isinstance(item, dict):
        raise ValueError(f"a call is an object, not {_kind(item)}")  # noqa: TRY004
    unknown = sorted(set(item) - set(_FIELDS))
    if unknown:
        raise ValueError(f"unknown field {', '.join(map(repr, unknown))}; a call has {', '.join(_FIELDS)}")
    if item.get("name") is None:
        raise ValueError("'name' is missing")
    for field in ("name", "call_id", "idempotency_key"):
        if not isinstance(item.get(field), str | None):
            raise ValueError(f"{field!r} is {_kind(item[field])}, not a string")  # noqa: TRY004
    arguments = item.get("arguments")
    return ToolCall(
        item["name"],
        {} if arguments is None else arguments,
        call_id=item.get("call_id"),
        idempotency_key=item.get("idempotency_key"),
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two values under one name: which of them was meant is anybody's guess, and another reader's may differ."""
    item = dict(pairs)
    if len(item) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)!r} is given twice")
    return item


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"not JSON: {word}")


def _kind(value: object) -> str:
    words = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return words.get(type(value), "a number")
