"""The JSON form of a result: a public contract for the command line, the journal and the servers."""

import json
from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter

from toolrunner.results.result import ToolResult

SCHEMA_VERSION = 1
"""Raised when a field changes its meaning or goes away; new fields do not raise it."""

_DERIVED: dict[str, Any] = {
    "schema_version": {"const": SCHEMA_VERSION, "description": "version of this form"},
    "is_error": {"type": "boolean", "description": "whether a model should read the result as an error"},
    "summary": {"type": "string", "description": "what happened, in a sentence"},
    "files_changed": {
        "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
        "description": "paths seen to have changed; null = nobody looked, [] = looked, nothing seen",
    },
}


@cache
def _version() -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[Any, AfterValidator(_known_version)])


def _known_version(version: object) -> object:
    if type(version) is not int or version != SCHEMA_VERSION:
        raise ValueError(f"schema_version is {version!r}; this reader knows {SCHEMA_VERSION}")
    return version


@cache
def _adapter() -> TypeAdapter[ToolResult]:
    return TypeAdapter(ToolResult)


def result_to_dict(result: ToolResult) -> dict[str, Any]:
    """The result as plain JSON values, the derived answers included."""
    changed = result.files_changed
    return {
        "schema_version": SCHEMA_VERSION,
        **_adapter().dump_python(result, mode="json"),
        "is_error": result.is_error,
        "summary": result.summary(),
        "files_changed": None if changed is None else list(changed),
    }


def result_to_json(result: ToolResult) -> str:
    """The result as one line of JSON."""
    line = json.dumps(result_to_dict(result), ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate (a file name that is no UTF-8, in an error's text) cannot be written as it is; JSON's escape for it can.
    return line.encode(errors="backslashreplace").decode()


def result_from_json(text: str | bytes) -> ToolResult:
    """Read one line that `result_to_json` wrote.

    Raises:
        json.JSONDecodeError: it is no JSON.
        pydantic.ValidationError: it is no result, one of another `schema_version`, or one that cannot be true.
            (Both are a ValueError.)
    """
    data = json.loads(text)
    if isinstance(data, dict):
        _version().validate_python(data.get("schema_version"))
        data = {key: value for key, value in data.items() if key not in _DERIVED}
    return _adapter().validate_python(data)


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the form."""
    form = _adapter().json_schema(mode="serialization")
    form["properties"] = {**_DERIVED, **form["properties"]}
    form["required"] = sorted(form["properties"])
    form["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return form
