"""Tool lists: each provider's form, its schema dialect, strict mode, names and kinds."""

import copy
from typing import Any

import pytest

from toolrunner.errors import ConfigError
from toolrunner.wire import CallKind, Provider, ToolSpec, tools_for

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"path": {"type": "string"}, "mode": {"const": "fast"}, "const": {"type": "integer", "default": 1}},
    "required": ["path"],
    "$defs": {"Other": {"type": "object", "properties": {"kind": {"const": "other"}}}},
}
PLAIN = {key: value for key, value in SCHEMA.items() if key != "$schema"}
GEMINI = {
    **PLAIN,
    "properties": {"path": {"type": "string"}, "mode": {"enum": ["fast"]}, "const": {"type": "integer", "default": 1}},
    "$defs": {"Other": {"type": "object", "properties": {"kind": {"enum": ["other"]}}}},
}
EMPTY = {"type": "object", "properties": {}}
READ = ToolSpec("read", "Read a file.", SCHEMA)
NOW = ToolSpec("now", "", {})

EXPECTED: dict[Provider, list[dict[str, Any]]] = {
    Provider.ANTHROPIC: [
        {"name": "read", "description": "Read a file.", "input_schema": PLAIN},
        {"name": "now", "input_schema": EMPTY},
    ],
    Provider.OPENAI_CHAT: [
        {"type": "function", "function": {"name": "read", "description": "Read a file.", "parameters": PLAIN}},
        {"type": "function", "function": {"name": "now", "parameters": EMPTY}},
    ],
    Provider.OPENAI_RESPONSES: [
        {"type": "function", "name": "read", "description": "Read a file.", "parameters": PLAIN, "strict": False},
        {"type": "function", "name": "now", "parameters": EMPTY, "strict": False},
    ],
    Provider.GEMINI: [
        {
            "functionDeclarations": [
                {"name": "read", "description": "Read a file.", "parametersJsonSchema": GEMINI},
                {"name": "now"},
            ]
        }
    ],
    Provider.GEMINI_INTERACTIONS: [
        {"type": "function", "name": "read", "description": "Read a file.", "parameters": GEMINI},
        {"type": "function", "name": "now", "parameters": EMPTY},
    ],
}


@pytest.mark.parametrize("provider", list(Provider))
def test_tools_have_the_provider_s_form_and_the_specs_stay_untouched(provider: Provider) -> None:
    before = copy.deepcopy(SCHEMA)
    tools = tools_for(provider, [READ, NOW])
    assert tools == EXPECTED[provider]
    str(tools)
    for tool in tools:
        tool.clear()
    assert before == SCHEMA


@pytest.mark.parametrize("provider", list(Provider))
def test_no_tools_are_an_empty_list(provider: Provider) -> None:
    assert tools_for(provider, []) == []


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


STRICT = [
    closed(),
    closed(a={"type": "string", "description": "x"}, b={"type": ["integer", "null"], "minimum": 0}),
    closed(a={"type": "array", "items": closed(b={"enum": [1, 2]})}),
    closed(a={"anyOf": [{"type": "null"}, {"$ref": "#/$defs/A"}]}) | {"$defs": {"A": closed(b={"const": 1})}},
]
LOOSE = [
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    closed(a={"type": "string"}) | {"required": []},
    closed(a={"type": "object", "properties": {}}),
    closed(a={"type": "object", "additionalProperties": {"type": "string"}}),
    closed(a={"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}}}),
    closed(a={"type": "string", "minLength": 1}),
    closed(a={"type": "string", "default": "x"}),
    closed(a={"oneOf": [{"type": "string"}]}),
    closed(a={"$ref": "#/$defs/A", "description": "x"}) | {"$defs": {"A": closed()}},
    closed(a={"$ref": "#/$defs/A"}) | {"$defs": {"A": {"type": "object", "properties": {}}}},
    closed(a={}),
    closed(a=True),
]


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = closed(a=schema)
    return schema


@pytest.mark.parametrize("schema", [*STRICT, nested(10)])
def test_strict_is_set_on_request_for_a_schema_that_satisfies_it(schema: dict[str, Any]) -> None:
    specs = [ToolSpec("t", "d", schema)]
    assert tools_for("openai_chat", specs, strict=True)[0]["function"]["strict"] is True
    assert tools_for("openai_responses", specs, strict=True)[0]["strict"] is True
    assert "strict" not in tools_for("openai_chat", specs)[0]["function"]
    assert tools_for("openai_responses", specs)[0]["strict"] is False


@pytest.mark.parametrize("schema", [*LOOSE, nested(11)])
def test_strict_is_never_set_for_a_schema_that_it_would_refuse(schema: dict[str, Any]) -> None:
    specs = [ToolSpec("t", "d", schema)]
    chat = tools_for("openai_chat", specs, strict=True)[0]["function"]
    assert "strict" not in chat
    assert chat["parameters"] == schema
    assert tools_for("openai_responses", specs, strict=True)[0]["strict"] is False


def test_const_inside_every_kind_of_subschema_becomes_an_enum_for_gemini() -> None:
    const, enum = {"const": 1}, {"enum": [1]}

    def schema(inner: dict[str, Any]) -> dict[str, Any]:
        parts = {"anyOf": [inner], "items": inner, "additionalProperties": inner, "prefixItems": [inner, True]}
        return {"type": "object", "properties": {"a": parts}}

    (tool,) = tools_for("gemini_interactions", [ToolSpec("t", "d", schema(const))])
    assert tool["parameters"] == schema(enum)


@pytest.mark.parametrize(
    "provider,name",
    [
        ("anthropic", "a.b"),
        ("anthropic", "a" * 129),
        ("openai_chat", "a" * 65),
        ("openai_chat", ""),
        ("openai_responses", "a b"),
        ("gemini", "1a"),
        ("gemini_interactions", "é"),
        ("anthropic", "a\n"),
    ],
)
def test_a_name_that_the_provider_would_refuse_is_refused_here_and_named(provider: str, name: str) -> None:
    with pytest.raises(ConfigError) as refused:
        tools_for(provider, [NOW, ToolSpec(name, "d", {})])
    assert repr(name) in str(refused.value)
    assert provider in str(refused.value)


def test_gemini_takes_dots_colons_and_dashes_in_names() -> None:
    assert tools_for("gemini", [ToolSpec("_a.b:c-d", "", {})])[0]["functionDeclarations"] == [{"name": "_a.b:c-d"}]


@pytest.mark.parametrize("provider", list(Provider))
def test_parameters_that_are_no_object_are_refused(provider: Provider) -> None:
    with pytest.raises(ConfigError, match="parameters of tool 't'"):
        tools_for(provider, [ToolSpec("t", "d", {"type": "string"})])


def test_other_kinds_of_tools_exist_where_the_provider_has_them() -> None:
    specs = [ToolSpec(kind.value, "d", {}, kind) for kind in CallKind if kind != CallKind.FUNCTION]
    assert tools_for("openai_responses", specs) == [
        {"type": "custom", "name": "custom", "description": "d"},
        {"type": "shell", "environment": {"type": "local"}},
        {"type": "local_shell"},
        {"type": "apply_patch"},
    ]
    assert tools_for("openai_chat", specs[:1]) == [{"type": "custom", "custom": {"name": "custom", "description": "d"}}]


@pytest.mark.parametrize("provider", [provider for provider in Provider if provider != Provider.OPENAI_RESPONSES])
def test_a_kind_that_the_provider_does_not_have_is_refused(provider: Provider) -> None:
    with pytest.raises(ConfigError, match="kind of tool 'sh' is 'shell'; expected 'function'"):
        tools_for(provider, [ToolSpec("sh", "d", {}, CallKind.SHELL)])
