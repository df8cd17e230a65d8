"""Schema dialects: what of JSON Schema each provider understands, and the check whether strict mode would take a schema. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolrunner.errors import ConfigError
from toolrunner.wire.reading import plain
from toolrunner.wire.values import CallKind, Item, Provider, ToolSpec

_BY_NAME = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")

_STRICT_KEYWORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs", "definitions"}
    | {"title", "description", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"minItems", "maxItems"}
)
"""Source: OpenAI, "Structured outputs", supported schemas. A keyword missing here costs strictness, never a refused request."""

GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
"""Function names of both Gemini APIs (FunctionDeclaration.name)."""

_STRICT_DEPTH = 10
"""Levels of nesting that strict mode takes (same page)."""


def object_schema(spec: ToolSpec) -> Item:
    """Copy a tool's schema and see that it describes an object, the only form any provider takes."""
    schema = plain(spec.parameters)
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise ConfigError(f"parameters of tool {spec.name!r}", spec.parameters, 'a JSON Schema with "type": "object"')
    schema.pop("$schema", None)  # names the dialect, says nothing to a model, and Gemini refuses it
    return {"type": "object", "properties": {}, **schema}


def checked_names(provider: Provider, specs: Sequence[ToolSpec], allowed: re.Pattern[str]) -> Sequence[ToolSpec]:
    """Refuse a name the provider would refuse: it would refuse the whole request, and not say which tool."""
    for spec in specs:
        if not allowed.fullmatch(spec.name):
            raise ConfigError("name of a tool", spec.name, f"a name matching {allowed.pattern}, which is what {provider} accepts")
    return specs


def functions_only(provider: Provider, specs: Sequence[ToolSpec]) -> None:
    """Refuse a tool of a kind that the provider does not have."""
    for spec in specs:
        if spec.kind != CallKind.FUNCTION:
            raise ConfigError(f"kind of tool {spec.name!r}", str(spec.kind), f"'function', the only kind that {provider} has")


def mapped(schema: object, change: Callable[[Item], Item]) -> Any:  # JSON
    """Apply `change` to a schema and to every schema inside it; property names that look like keywords are left alone."""
    if not isinstance(schema, Mapping):
        return schema  # true and false are schemas too
    out = dict(schema)
    for key in _BY_NAME:
        if isinstance(out.get(key), Mapping):
            out[key] = {name: mapped(sub, change) for name, sub in out[key].items()}
    for key in _LISTS:
        if isinstance(out.get(key), list):
            out[key] = [mapped(sub, change) for sub in out[key]]
    for key in _SINGLE:
        if key in out:
            out[key] = mapped(out[key], change)
    return change(out)


def gemini_schema(spec: ToolSpec) -> Item:
    """Return the schema in Gemini's subset. `const` is not in it and would be ignored; an `enum` of one value says the same."""

    def const_as_enum(schema: Item) -> Item:
        if "const" not in schema:
            return schema
        rest = {key: value for key, value in schema.items() if key != "const"}
        return {**rest, "enum": [schema["const"]]}

    return mapped(object_schema(spec), const_as_enum)  # type: ignore[no-any-return]


def satisfies_strict(schema: object, depth: int = 0) -> bool:
    """Say whether OpenAI's strict mode takes this schema as it is.

    It is never rewritten to fit: making an optional parameter required-but-nullable changes what the tool receives.
    """
    if not isinstance(schema, Mapping) or not _STRICT_KEYWORDS.issuperset(schema) or depth > _STRICT_DEPTH:
        return False
    if "$ref" in schema:
        return len(schema) == 1
    if not schema.keys() & {"type", "anyOf", "enum", "const"}:
        return False  # "anything" has no grammar
    return _strict_object(schema) and all(satisfies_strict(sub, depth + 1) for sub in _subschemas(schema))


def _strict_object(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    if kinds != "object" and not (isinstance(kinds, list) and "object" in kinds):
        return True
    return schema.get("additionalProperties") is False and set(schema.get("required", ())) == set(schema.get("properties", ()))


def _subschemas(schema: Mapping[str, Any]) -> list[object]:
    named = [sub for key in ("properties", "$defs", "definitions") for sub in schema.get(key, {}).values()]
    return [*named, *schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]
