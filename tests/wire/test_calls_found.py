"""Calls found in whole responses of each provider: all of them, in order, and none that are not ours to run."""

from typing import Any

import pytest
from wire.calls import ANTHROPIC, APPLY_PATCH, ARGUMENTS, CHAT, CHAT_CUSTOM, FUNCTION, GEMINI, INTERACTIONS, LOCAL_SHELL, SHELL

from toolrunner.wire import calls_in


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
