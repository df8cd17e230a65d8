"""What is refused at the provider edge, and whether the message says what was wrong and where."""

from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, Field

from toolrunner.errors import ConfigError, ToolrunnerError
from toolrunner.facts import Text
from toolrunner.wire import (
    MalformedItem,
    Provider,
    ToolSpec,
    WireCall,
    WireResult,
    call_from_item,
    call_item,
    calls_in,
    provider_named,
    result_item,
    result_messages,
    tools_for,
)

RESULT = WireResult("call_1", "read", content=(Text("x"),))
CALL = WireCall("read", {}, "call_1")


@pytest.mark.parametrize(
    "use",
    [
        lambda provider: tools_for(provider, []),
        lambda provider: call_from_item(provider, {}),
        lambda provider: calls_in(provider, {}),
        lambda provider: call_item(provider, CALL),
        lambda provider: result_item(provider, RESULT),
        lambda provider: result_messages(provider, []),
        provider_named,
    ],
)
def test_an_unknown_provider_is_refused_with_the_known_ones_and_the_nearest(use: Callable[[str], object]) -> None:
    with pytest.raises(ConfigError) as refused:
        use("openai_respones")
    assert str(refused.value) == (
        "provider is 'openai_respones'; expected one of anthropic, openai_chat, openai_responses, gemini, gemini_interactions "
        "(did you mean 'openai_responses'?)"
    )
    with pytest.raises(ConfigError) as far:
        use("zzz")
    assert "did you mean" not in str(far.value)


FUNCTION_CALL = {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}


@pytest.mark.parametrize(
    "provider,item,said",
    [
        ("anthropic", {"type": "text", "text": "x"}, "anthropic tool_use block: its type is 'text'; expected 'tool_use'"),
        ("anthropic", {"type": "tool_use", "id": "a", "input": {}}, "'name' is missing; expected a string"),
        ("anthropic", {"type": "tool_use", "name": "n", "input": {}}, "'id' is missing; expected a string"),
        ("anthropic", {"type": "tool_use", "name": "n", "id": "", "input": {}}, "'id' is empty; expected the id"),
        (
            "anthropic",
            {"type": "tool_use", "name": "n", "id": "a", "input": [1]},
            "'input' is list [1]; expected an object or JSON text",
        ),
        (
            "openai_chat",
            {"id": "a", "type": "magic"},
            "openai_chat tool call: its type is 'magic'; expected 'function' or 'custom'",
        ),
        ("openai_chat", {"id": "a", "type": "function"}, "'function' is missing; expected an object"),
        (
            "openai_chat",
            {"id": "a", "type": "function", "function": {"name": 7}},
            "openai_chat tool call.function: 'name' is int 7; expected a string",
        ),
        ("openai_chat", {"id": None, "type": "function", "function": {"name": "n"}}, "'id' is NoneType None; expected a string"),
        ("openai_chat", {"id": "a", "type": "custom", "custom": {"name": "n"}}, "'input' is missing; expected a string"),
        (
            "openai_responses",
            {"type": "computer_call"},
            "its type is 'computer_call'; expected one of function_call, custom_tool_call",
        ),
        ("openai_responses", {"type": ["x"]}, "its type is ['x']; expected one of"),
        ("openai_responses", {**FUNCTION_CALL, "call_id": None, "id": "fc_1"}, "'call_id' is NoneType None; expected a string"),
        ("openai_responses", {**FUNCTION_CALL, "status": "incomplete"}, "its status is 'incomplete'"),
        ("openai_responses", {"type": "shell_call", "call_id": "c", "action": "ls"}, "'action' is str 'ls'; expected an object"),
        ("openai_responses", {"type": "apply_patch_call", "call_id": "c"}, "'operation' is missing; expected an object"),
        ("gemini", {"text": "x"}, "gemini part: has no functionCall, only text"),
        ("gemini", {}, "has no functionCall, only nothing"),
        ("gemini", {"functionCall": {"args": {}}}, "gemini functionCall: 'name' is missing; expected a string"),
        ("gemini", {"functionCall": {"name": "n", "id": 3}}, "'id' is int 3; expected a string"),
        ("gemini", {"functionCall": {"name": "n", "willContinue": True}}, "is a piece of a streamed call"),
        ("gemini_interactions", {"type": "thought"}, "its type is 'thought'; expected 'function_call'"),
        ("gemini_interactions", {"type": "function_call", "name": "n", "arguments": {}}, "'id' is missing"),
        ("anthropic", "text", "anthropic call: is str 'text'; expected a dict or an object with model_dump()"),
        ("gemini", BaseModel, "is ModelMetaclass <class"),
    ],
)
def test_a_malformed_call_is_refused_with_what_was_wrong_and_where(provider: str, item: Any, said: str) -> None:
    with pytest.raises(MalformedItem) as refused:
        call_from_item(provider, item)
    assert said in str(refused.value)
    assert refused.value.provider == provider
    assert isinstance(refused.value, ToolrunnerError)


@pytest.mark.parametrize("provider", list(Provider))
@pytest.mark.parametrize("response", [{}, None, "text", 7, {"error": {"message": "overloaded"}}])
def test_something_that_is_no_response_is_refused_and_not_taken_for_one_without_calls(provider: Provider, response: Any) -> None:
    with pytest.raises(MalformedItem, match="response: is "):
        calls_in(provider, response)


@pytest.mark.parametrize(
    "provider,response,said",
    [
        ("anthropic", {"content": [7]}, r"content\[0\]: is int 7; expected an object"),
        ("openai_chat", {"choices": [{"message": {"tool_calls": ["x"]}}]}, r"tool_calls\[0\]: is str 'x'"),
        ("openai_chat", {"choices": [{"message": {"tool_calls": 7}}]}, "tool_calls: is int 7; expected a list"),
        ("openai_chat", {"choices": [7]}, "choices: is list"),
        ("openai_chat", {"choices": {"a": 1}}, "choices: is dict"),
        ("openai_chat", {"choices": [{"message": None}]}, "choices: is list"),
        ("openai_responses", {"output": [None]}, r"output\[0\]: is NoneType None"),
        ("gemini", {"candidates": [7]}, "response: is dict"),
        ("gemini", {"candidates": 7}, "response: is dict"),
        ("gemini", {"parts": [7]}, r"parts\[0\]: is int 7"),
        ("gemini_interactions", {"steps": [7]}, r"steps\[0\]: is int 7"),
        ("anthropic", {"content": [{"type": "tool_use", "id": "a"}]}, "'name' is missing"),
    ],
)
def test_a_malformed_entry_of_a_response_is_refused_with_its_place(provider: str, response: Any, said: str) -> None:
    with pytest.raises(MalformedItem, match=said):
        calls_in(provider, response)


def test_a_message_quotes_only_the_beginning_of_a_long_value() -> None:
    with pytest.raises(MalformedItem) as refused:
        calls_in("anthropic", "x" * 1_000_000)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("provider", [provider for provider in Provider if provider != Provider.GEMINI])
@pytest.mark.parametrize("missing", [None, ""])
def test_an_answer_without_the_id_it_must_name_is_refused(provider: Provider, missing: str | None) -> None:
    with pytest.raises(ConfigError, match="call_id of 'read'"):
        result_item(provider, WireResult(missing, "read"))
    with pytest.raises(ConfigError, match="call_id of 'read'"):
        result_messages(provider, [RESULT, WireResult(missing, "read")])
    with pytest.raises(ConfigError, match="call_id of 'read'"):
        call_item(provider, WireCall("read", {}, missing))


@pytest.mark.parametrize("provider", list(Provider))
def test_an_unknown_kind_is_refused_with_the_known_ones(provider: Provider) -> None:
    expected = "kind of 'read' is 'shel'; expected one of function, custom, shell, local_shell, apply_patch"
    for use in (
        lambda: result_item(provider, WireResult("c", "read", "shel")),
        lambda: result_messages(provider, [RESULT, WireResult("c", "read", "shel")]),
        lambda: call_item(provider, WireCall("read", {}, "c", "shel")),
        lambda: tools_for(provider, [ToolSpec("read", "d", {}, "shel")]),
    ):
        with pytest.raises(ConfigError) as refused:
            use()
        assert str(refused.value) == expected


@pytest.mark.parametrize("provider", ["openai_chat", "openai_responses"])
def test_a_custom_call_without_its_text_is_refused(provider: str) -> None:
    with pytest.raises(ConfigError, match="arguments of custom call 'sql'"):
        call_item(provider, WireCall("sql", {"text": "x"}, "c", "custom"))


class Function(BaseModel):
    name: str
    arguments: str


class ToolCallObject(BaseModel):
    """Stands for an SDK's object: built unvalidated, with a field under an alias."""

    id: str
    function: Function
    type: str = "function"
    later: bool | None = Field(default=None, alias="async")


class OldObject:
    def to_dict(self) -> dict[str, Any]:
        return {"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}}


def test_sdk_objects_are_read_like_dicts() -> None:
    built = ToolCallObject.model_construct(id="c", function=Function(name="n", arguments="{}"), later=True)
    assert call_from_item("openai_chat", built) == WireCall("n", "{}", "c", provider_meta={"async": True})
    assert calls_in("openai_chat", {"tool_calls": [built, OldObject()]}) == [
        call_from_item("openai_chat", built),
        WireCall("n", "{}", "c"),
    ]


def test_an_sdk_object_with_a_field_that_its_model_does_not_expect_is_read_without_a_warning() -> None:
    built = ToolCallObject.model_construct(id="c", function=Function.model_construct(name="n", arguments={"a": 1}))
    assert call_from_item("openai_chat", built).arguments == {"a": 1}


def test_null_arguments_of_an_sdk_object_are_kept() -> None:
    class Block(BaseModel):
        type: str
        id: str
        name: str
        input: dict[str, Any]

    block = Block(type="tool_use", id="a", name="n", input={"limit": None})
    assert call_from_item("anthropic", block).arguments == {"limit": None}


def test_gemini_is_read_in_both_spellings_with_signatures_as_bytes_or_text() -> None:
    dumped = {"function_call": {"name": "n", "args": None, "id": None}, "thought_signature": b"sig", "text": None}
    expected = WireCall("n", {}, None, provider_meta={"thoughtSignature": "c2ln"})
    assert call_from_item("gemini", dumped) == expected
    assert call_from_item("gemini", {"functionCall": {"name": "n"}, "thoughtSignature": "c2ln"}) == expected
    assert call_from_item("gemini", {"name": "n", "args": {}}) == WireCall("n", {})


class FinishReason(str, Enum):  # noqa: UP042  # the form under test
    """The form of Google's SDK: not a StrEnum, so that str() of it is not its value."""

    NORMAL = "STOP"
    LIMIT = "MAX_TOKENS"


def test_an_enum_member_in_a_dumped_response_is_read_as_the_word_it_stands_for() -> None:
    def response(reason: FinishReason) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": [{"function_call": {"name": "n"}}]}, "finish_reason": reason}]}

    assert [call.name for call in calls_in("gemini", response(FinishReason.NORMAL))] == ["n"]
    assert calls_in("gemini", response(FinishReason.LIMIT)) == []
