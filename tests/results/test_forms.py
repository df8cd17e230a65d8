"""The JSON form: a public contract. What is written can be read again, fits the schema, and the schema does not change unseen."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError
from results.legal import STOP, result, results

from toolrunner.facts.frozen import freeze_arguments
from toolrunner.results import (
    SCHEMA_VERSION,
    Code,
    Ended,
    Error,
    Outcome,
    ToolResult,
    result_from_json,
    result_to_dict,
    result_to_json,
    schema,
)

GOLDEN = Path(__file__).parent / "schema.json"
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),), "array": (list,),
    "object": (dict,),
}  # fmt: skip
KNOWN = {
    "$defs", "$ref", "$schema", "additionalProperties", "anyOf", "const", "default", "description", "discriminator", "enum",
    "format", "items", "oneOf", "properties", "required", "title", "type", "mapping", "propertyName",
}  # fmt: skip


def fits(value: Any, form: dict[str, Any], defs: dict[str, Any]) -> bool:
    """Whether `value` fits the schema `form`, for the few words that the schema uses."""
    assert set(form) <= KNOWN, f"the check does not know {set(form) - KNOWN}"
    if "$ref" in form and not fits(value, defs[form["$ref"].removeprefix("#/$defs/")], defs):
        return False
    alternatives = form.get("anyOf") or form.get("oneOf")
    if alternatives and not any(fits(value, one, defs) for one in alternatives):
        return False
    if "const" in form and value != form["const"]:
        return False
    if "enum" in form and value not in form["enum"]:
        return False
    return _fits_type(value, form, defs)


def _fits_type(value: Any, form: dict[str, Any], defs: dict[str, Any]) -> bool:
    if "type" in form and (type(value) not in TYPES[form["type"]]):
        return False
    if isinstance(value, list) and "items" in form:
        return all(fits(item, form["items"], defs) for item in value)
    if isinstance(value, dict):
        known = form.get("properties", {})
        rest = form.get("additionalProperties", {})
        return set(form.get("required", ())) <= set(value) and all(
            fits(item, known[key] if key in known else rest if isinstance(rest, dict) else {}, defs)
            for key, item in value.items()
        )
    return True


@given(one=results())
def test_what_is_written_can_be_read_again(one: ToolResult) -> None:
    line = result_to_json(one)
    assert "\n" not in line
    assert result_from_json(line) == one
    assert result_from_json(line.encode()) == one
    assert json.loads(line) == result_to_dict(one)


@given(one=results())
def test_what_is_written_fits_the_schema(one: ToolResult) -> None:
    form = schema()
    written = json.loads(result_to_json(one))
    assert set(written) == set(form["properties"])
    assert fits(written, form, form["$defs"])


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "done"}, {"started": "yes"}, {"schema_version": 2}, {"still_running": {}}, {"effects": {}}, {"run_id": None},
        {"content": [{"type": "video"}]}, {"stop": {"source": 1}}, {"files_changed": [1]}, {"attempts": True},
    ],
)  # fmt: skip
def test_the_check_can_fail(change: dict[str, Any]) -> None:
    form = schema()
    assert not fits({**result_to_dict(result(stop=STOP)), **change}, form, form["$defs"])


def test_the_public_contract_has_not_changed() -> None:
    """When it has to: write `schema()` to the file, and raise SCHEMA_VERSION if a field goes away or changes its meaning."""
    assert schema() == json.loads(GOLDEN.read_text())
    assert schema()["properties"]["schema_version"]["const"] == SCHEMA_VERSION


def test_each_call_of_schema_gives_a_schema_of_its_own() -> None:
    schema()["properties"].clear()
    assert schema()["properties"]


def test_the_answers_are_written_with_the_facts() -> None:
    one = result(outcome=Outcome.FAILED, code=Code.TOOL_ERROR, ended=Ended.RAISED, error=Error("x", "disk full"), stop=STOP)
    written = result_to_dict(one)
    assert written["schema_version"] == SCHEMA_VERSION
    assert written["is_error"] is True
    assert written["summary"] == one.summary()
    assert written["files_changed"] is None
    assert written["stop"]["requested_at"] == "2026-03-04T05:06:07.890123Z"


def test_frozen_arguments_are_written_as_what_they_are() -> None:
    one = result(arguments=freeze_arguments({"a": [1, {"b": None}]}))
    assert result_to_dict(one)["arguments"] == {"a": [1, {"b": None}]}
    assert result_from_json(result_to_json(one)) == one


def test_a_name_that_is_no_utf8_can_be_written_to_a_file() -> None:
    one = result(outcome=Outcome.FAILED, code=Code.TOOL_ERROR, ended=Ended.RAISED, error=Error("x", "no file '/tmp/\udcff'"))
    line = result_to_json(one)
    assert line.encode()
    assert result_from_json(line) == one


@pytest.mark.parametrize(
    "change, problem",
    [
        ({"started": False}, "cannot be true"),
        ({"ended": None}, "cannot be true"),
        ({"outcome": "done"}, "outcome"),
        ({"schema_version": 2}, "schema_version is 2"),
        ({"schema_version": True}, "schema_version is True"),
        ({"schema_version": None}, "schema_version is None"),
        ({"effects": None}, "effects"),
    ],
)
def test_what_is_no_true_result_of_this_version_is_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        result_from_json(json.dumps({**result_to_dict(result()), **change}))


@pytest.mark.parametrize("text", ["[]", "null", "{}", "3"])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        result_from_json(text)


def test_what_is_no_json_is_a_value_error_too() -> None:
    with pytest.raises(json.JSONDecodeError):
        result_from_json("{")


def test_fields_of_a_later_writer_are_passed_over() -> None:
    one = result()
    assert result_from_json(json.dumps({**result_to_dict(one), "new_field": 1})) == one
