"""Calls of each provider as its API sends them, and how they are read and sent back."""

import copy
from typing import Any

import pytest

from toolrunner.wire import CallKind, Provider, WireCall, call_from_item, call_item, calls_in

ARGUMENTS: dict[str, Any] = {"path": "a.txt", "limit": None}

ANTHROPIC: dict[str, Any] = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "read",
    "input": ARGUMENTS,
    "caller": {"type": "direct"},
    "toolset_name": "browser",
}
CHAT: dict[str, Any] = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.txt"}'}}
CHAT_SIGNED: dict[str, Any] = {**CHAT, "extra_content": {"google": {"thought_signature": "c2ln"}}}
CHAT_CUSTOM: dict[str, Any] = {"id": "call_2", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
FUNCTION: dict[str, Any] = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "read",
    "arguments": '{"path":"a.txt"}',
    "status": "completed",
    "namespace": "files",
    "caller": {"type": "program", "caller_id": "prog_1"},
}
CUSTOM: dict[str, Any] = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "sql", "input": "select 1"}
SHELL: dict[str, Any] = {
    "type": "shell_call",
    "id": "sh_1",
    "call_id": "call_3",
    "status": "in_progress",
    "action": {"commands": ["ls", "pwd"], "timeout_ms": 1000, "max_output_length": 4096},
    "environment": {"type": "local"},
}
LOCAL_SHELL: dict[str, Any] = {
    "type": "local_shell_call",
    "id": "lsh_1",
    "call_id": "call_4",
    "status": "completed",
    "action": {"type": "exec", "command": ["ls"], "env": {}, "working_directory": "/w"},
}
APPLY_PATCH: dict[str, Any] = {
    "type": "apply_patch_call",
    "id": "apc_1",
    "call_id": "call_5",
    "status": "completed",
    "operation": {"type": "update_file", "path": "a.py", "diff": "@@\n-a\n+b\n"},
}
GEMINI: dict[str, Any] = {"functionCall": {"id": "g1", "name": "read", "args": ARGUMENTS}, "thoughtSignature": "c2ln"}
INTERACTIONS: dict[str, Any] = {"type": "function_call", "id": "i1", "name": "read", "arguments": ARGUMENTS, "signature": "c2ln"}

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


def anthropic_message(**fields: Any) -> dict[str, Any]:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "I look."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        ANTHROPIC,
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "x", "server_name": "y", "input": {}},
        {**ANTHROPIC, "id": "toolu_2"},
    ]
    return {"role": "assistant", "content": blocks, "stop_reason": "tool_use", **fields}


def chat_completion(finish_reason: str = "tool_calls") -> dict[str, Any]:
    message = {"role": "assistant", "content": None, "tool_calls": [CHAT, CHAT_CUSTOM]}
    other = {"role": "assistant", "content": None, "tool_calls": [{**CHAT, "id": "call_of_an_alternative"}]}
    return {"choices": [{"finish_reason": finish_reason, "message": message}, {"finish_reason": "tool_calls", "message": other}]}


def response(**fields: Any) -> dict[str, Any]:
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        FUNCTION,
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "mcp_call", "id": "mcp_1", "name": "x", "arguments": "{}", "server_label": "y"},
        SHELL,
        APPLY_PATCH,
    ]
    return {"status": "completed", "output": output, **fields}


def gemini_response(**fields: Any) -> dict[str, Any]:
    parts = [
        {"text": "hm", "thought": True},
        GEMINI,
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"functionCall": {"name": "now"}},
    ]
    other = {"content": {"parts": [{"functionCall": {"name": "call_of_an_alternative"}}]}, "finishReason": "STOP"}
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", **fields}, other]}


def interaction(**fields: Any) -> dict[str, Any]:
    steps = [
        {"type": "function_call", "id": "i0", "name": "read", "arguments": {}},
        {"type": "function_result", "call_id": "i0", "result": "done in an earlier turn"},
        {"type": "thought", "signature": "c2ln"},
        {"type": "google_search_call", "id": "gs1", "arguments": {"queries": []}},
        INTERACTIONS,
        {**INTERACTIONS, "id": "i2"},
    ]
    return {"status": "requires_action", "steps": steps, **fields}


def test_all_calls_of_an_anthropic_message_are_found_in_order_and_server_tools_left_alone() -> None:
    assert [call.call_id for call in calls_in("anthropic", anthropic_message())] == ["toolu_1", "toolu_2"]
    assert [call.call_id for call in calls_in("anthropic", anthropic_message()["content"])] == ["toolu_1", "toolu_2"]
    assert calls_in("anthropic", {"role": "assistant", "content": "just text"}) == []


def test_all_calls_of_the_first_choice_of_a_chat_completion_are_found() -> None:
    assert [call.call_id for call in calls_in("openai_chat", chat_completion())] == ["call_1", "call_2"]
    message = chat_completion()["choices"][0]["message"]
    assert [call.call_id for call in calls_in("openai_chat", message)] == ["call_1", "call_2"]
    assert calls_in("openai_chat", {"role": "assistant", "content": "just text", "tool_calls": None}) == []
    assert calls_in("openai_chat", {"choices": []}) == []


def test_all_calls_of_a_responses_output_are_found_and_hosted_tools_left_alone() -> None:
    found = calls_in("openai_responses", response())
    assert [(call.call_id, call.kind) for call in found] == [
        ("call_1", "function"),
        ("call_3", "shell"),
        ("call_5", "apply_patch"),
    ]
    assert calls_in("openai_responses", response()["output"]) == found


def test_a_shell_call_that_the_provider_runs_or_has_answered_is_not_ours() -> None:
    hosted = {**SHELL, "environment": {"type": "container_reference", "container_id": "cntr_1"}}
    assert calls_in("openai_responses", [hosted]) == []
    answer = {"type": "shell_call_output", "call_id": "call_3", "output": []}
    assert calls_in("openai_responses", [SHELL, answer]) == []
    assert [call.call_id for call in calls_in("openai_responses", [SHELL, {**answer, "call_id": "call_9"}])] == ["call_3"]


def test_an_answered_local_shell_call_is_recognised_by_the_id_of_its_answer() -> None:
    answer = {"type": "local_shell_call_output", "id": "call_4", "output": '""'}
    assert calls_in("openai_responses", [LOCAL_SHELL, answer]) == []


def test_all_calls_of_the_first_gemini_candidate_are_found_with_or_without_ids() -> None:
    found = calls_in("gemini", gemini_response())
    assert [(call.name, call.call_id, call.arguments) for call in found] == [("read", "g1", ARGUMENTS), ("now", None, {})]
    content = gemini_response()["candidates"][0]["content"]
    assert calls_in("gemini", content) == calls_in("gemini", content["parts"]) == found


@pytest.mark.parametrize(
    "said_nothing",
    [
        {"candidates": []},
        {"candidates": None},
        {"promptFeedback": {"blockReason": "SAFETY"}},
        {"candidates": [{"finishReason": "STOP"}]},
        {"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]},
    ],
)
def test_a_gemini_response_that_says_nothing_has_no_calls(said_nothing: dict[str, Any]) -> None:
    assert calls_in("gemini", said_nothing) == []


def test_calls_of_an_interaction_are_found_without_those_answered_in_earlier_turns() -> None:
    assert [call.call_id for call in calls_in("gemini_interactions", interaction())] == ["i1", "i2"]
    assert [call.call_id for call in calls_in("gemini_interactions", interaction()["steps"])] == ["i1", "i2"]


@pytest.mark.case("H37")
@pytest.mark.parametrize(
    "provider,cut",
    [
        ("anthropic", anthropic_message(stop_reason="max_tokens")),
        ("anthropic", anthropic_message(stop_reason="refusal")),
        ("openai_chat", chat_completion("length")),
        ("openai_chat", chat_completion("content_filter")),
        ("openai_responses", response(status="incomplete")),
        ("openai_responses", response(status="failed")),
        ("openai_responses", [{**FUNCTION, "status": "incomplete"}]),
        ("gemini", gemini_response(finishReason="MAX_TOKENS")),
        ("gemini", gemini_response(finishReason="MALFORMED_FUNCTION_CALL")),
        ("gemini_interactions", interaction(status="incomplete")),
    ],
)
def test_a_response_that_was_cut_off_has_no_call_to_run(provider: str, cut: Any) -> None:
    assert calls_in(provider, cut) == []


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
