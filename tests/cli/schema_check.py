"""Checks a JSON value against the keywords of JSON Schema that our own schema uses.

An unknown keyword is an error, so that nothing is passed over. Stricter in one point: an object may have no property that its
schema does not name.
"""

from collections.abc import Iterator
from typing import Any

_SAYS_NOTHING = {"title", "description", "default", "format", "discriminator", "$schema", "$defs"}
_CHECKED = {"type", "enum", "const", "anyOf", "oneOf", "$ref", "properties", "required", "items", "additionalProperties"}
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),),
    "integer": (int,), "number": (int, float),
}  # fmt: skip


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None, path: str = "$") -> list[str]:
    """What does not fit, with its place; empty when all does."""
    root = root or schema
    if unknown := set(schema) - _SAYS_NOTHING - _CHECKED:
        raise NotImplementedError(f"{path}: {unknown}")
    found = list(_of_scalar(value, schema, path))
    if "$ref" in schema:
        found += problems(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, path)
    for choice in sorted({"anyOf", "oneOf"} & set(schema)):
        fits = [not problems(value, one, root, path) for one in schema[choice]]
        if not any(fits) or (choice == "oneOf" and sum(fits) != 1):
            found.append(f"{path}: {value!r} fits {sum(fits)} of {choice}")
    if isinstance(value, dict):
        found += _of_object(value, schema, root, path)
    if isinstance(value, list) and "items" in schema:
        found += [one for index, item in enumerate(value) for one in problems(item, schema["items"], root, f"{path}[{index}]")]
    return found


def _of_scalar(value: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    if "type" in schema and not _is(value, schema["type"]):
        yield f"{path}: {value!r} is no {schema['type']}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r} is not {schema['const']!r}"


def _is(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name not in ("integer", "number") or not isinstance(value, bool))


def _of_object(value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], path: str) -> list[str]:
    found = [f"{path}: {name} is missing" for name in schema.get("required", []) if name not in value]
    known = schema.get("properties")
    for name, item in value.items():
        if known is not None and name in known:
            found += problems(item, known[name], root, f"{path}.{name}")
        elif isinstance(schema.get("additionalProperties"), dict):
            found += problems(item, schema["additionalProperties"], root, f"{path}.{name}")
        elif known is not None and not schema.get("additionalProperties"):
            found.append(f"{path}: {name} is not in the schema")
    return found
