"""Calls of each provider as its API sends them: how one is read and sent back."""

import copy
from typing import Any

import pytest
from wire.calls import (
    ANTHROPIC,
    APPLY_PATCH,
    ARGUMENTS,
    CHAT,
    CHAT_CUSTOM,
    CHAT_SIGNED,
    CUSTOM,
    FUNCTION,
    GEMINI,
    INTERACTIONS,
    LOCAL_SHELL,
    SHELL,
)

from toolrunner.wire import CallKind, Provider, WireCall, call_from_item, call_item

GOLDEN: list[tuple[Provider, dict[str, Any], WireCall]] = [
    (
        Provider.ANTHROPIC,
        ANTHROPIC,
        WireCall("read", ARGUMENTS, "toolu_1", provider_meta={"caller": {"type": "direct"}, "toolset_name": "browser"}),
    ),
    (Provider.OPENAI_CHAT, CHAT, WireCall("read", '{"path": "a.txt"}', "call_1")),
    (
        Provider.OPENAI_CHAT,
        CHAT_SIGNED,
        WireCall(
            "read", '{"path": "a.txt"}', "call_1", provider_meta={"extra_content": {"google": {"thought_signature": "c2ln"}}}
        ),
    ),
    (Provider.OPENAI_CHAT, CHAT_CUSTOM, WireCall("sql", {"input": "select 1"}, "call_2", "custom")),
    (
        Provider.OPENAI_RESPONSES,
        FUNCTION,
        WireCall(
            "read",
            '{"path":"a.txt"}',
            "call_1",
            provider_meta={
                "id": "fc_1",
                "status": "completed",
                "namespace": "files",
                "caller": {"type": "program", "caller_id": "prog_1"},
            },
        ),
    ),
    (
        Provider.OPENAI_RESPONSES,
        CUSTOM,
        WireCall("sql", {"input": "select 1"}, "call_2", "custom", provider_meta={"id": "ctc_1"}),
    ),
    (
        Provider.OPENAI_RESPONSES,
        SHELL,
        WireCall(
            "shell",
            {"commands": ["ls", "pwd"], "timeout_ms": 1000, "max_output_length": 4096},
            "call_3",
            "shell",
            {"id": "sh_1", "status": "in_progress", "environment": {"type": "local"}, "max_output_length": 4096},
        ),
    ),
    (
        Provider.OPENAI_RESPONSES,
        LOCAL_SHELL,
        WireCall("local_shell", LOCAL_SHELL["action"], "call_4", "local_shell", {"id": "lsh_1", "status": "completed"}),
    ),
    (
        Provider.OPENAI_RESPONSES,
        APPLY_PATCH,
        WireCall("apply_patch", APPLY_PATCH["operation"], "call_5", "apply_patch", {"id": "apc_1", "status": "completed"}),
    ),
    (Provider.GEMINI, GEMINI, WireCall("read", ARGUMENTS, "g1", provider_meta={"thoughtSignature": "c2ln"})),
    (Provider.GEMINI_INTERACTIONS, INTERACTIONS, WireCall("read", ARGUMENTS, "i1", provider_meta={"signature": "c2ln"})),
]
every_golden_call = pytest.mark.parametrize("provider,item,call", GOLDEN, ids=lambda value: getattr(value, "kind", None))


@every_golden_call
def test_a_call_is_read_with_all_that_the_provider_sent_with_it(provider: Provider, item: dict[str, Any], call: WireCall) -> None:
    assert call_from_item(provider, item) == call


@every_golden_call
def test_a_call_sent_back_is_the_item_it_was_read_from(provider: Provider, item: dict[str, Any], call: WireCall) -> None:
    assert call_item(provider, call) == item


@every_golden_call
def test_reading_neither_changes_the_item_nor_shares_anything_with_it(
    provider: Provider, item: dict[str, Any], call: WireCall
) -> None:
    before = copy.deepcopy(item)
    read = call_from_item(provider, item)
    if isinstance(read.arguments, dict):
        read.arguments["changed"] = True
    for value in read.provider_meta.values():
        if isinstance(value, dict):
            value["changed"] = True
    assert item == before


@pytest.mark.parametrize("provider", list(Provider))
@pytest.mark.parametrize("arguments", ["{bad", "[1]", '{"a": NaN}', "[" * 100_000])
def test_arguments_that_are_no_json_object_are_kept_as_the_model_wrote_them(provider: Provider, arguments: str) -> None:
    sent_back = call_item(provider, WireCall("read", arguments, "call_1"))
    match provider:
        case Provider.OPENAI_CHAT:
            expected = arguments if arguments == "[1]" else "{}"
            assert sent_back["function"]["arguments"] == expected
        case Provider.OPENAI_RESPONSES:
            assert sent_back["arguments"] == arguments
        case Provider.ANTHROPIC:
            assert sent_back["input"] == {"INVALID_JSON": arguments}
        case Provider.GEMINI:
            assert sent_back["functionCall"]["args"] == {"INVALID_JSON": arguments}
        case Provider.GEMINI_INTERACTIONS:
            assert sent_back["arguments"] == {"INVALID_JSON": arguments}


def test_invalid_json_arguments_are_read_as_they_are_because_the_result_must_say_so() -> None:
    item = {**CHAT, "function": {"name": "read", "arguments": '{"path": '}}
    assert call_from_item("openai_chat", item).arguments == '{"path": '


@pytest.mark.parametrize("nothing", ["", None])
def test_no_arguments_at_all_are_an_empty_object(nothing: object) -> None:
    assert call_from_item("openai_chat", {**CHAT, "function": {"name": "now", "arguments": nothing}}).arguments == {}
    assert call_from_item("openai_responses", {**FUNCTION, "arguments": nothing}).arguments == {}


def test_fields_of_a_stream_or_of_the_reply_only_are_not_sent_back() -> None:
    streamed = call_from_item("openai_chat", {**CHAT, "index": 0})
    assert call_item("openai_chat", streamed) == CHAT
    stored = call_from_item("openai_responses", {**SHELL, "created_by": "user_1", "caller": None})
    assert call_item("openai_responses", stored) == SHELL


@pytest.mark.parametrize("provider", list(Provider))
def test_meta_of_another_provider_never_overrides_the_call(provider: Provider) -> None:
    foreign = {"id": "fc_1", "name": "other", "input": {}, "arguments": "other", "functionCall": {}, "function": {}, "type": "x"}
    call = WireCall("read", {"path": "a.txt"}, "call_1", provider_meta=foreign)
    read_again = call_from_item(provider, call_item(provider, call))
    assert (read_again.name, read_again.call_id) == ("read", "call_1")
    assert read_again.arguments in ({"path": "a.txt"}, '{"path":"a.txt"}')


def test_a_call_of_a_kind_that_only_responses_has_is_an_ordinary_call_elsewhere() -> None:
    call = WireCall("shell", {"commands": ["ls"]}, "call_1", CallKind.SHELL)
    assert call_item("anthropic", call) == {"type": "tool_use", "id": "call_1", "name": "shell", "input": {"commands": ["ls"]}}
    assert call_item("openai_chat", call)["function"] == {"name": "shell", "arguments": '{"commands":["ls"]}'}
