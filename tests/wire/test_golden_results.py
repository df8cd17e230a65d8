"""Results as each provider's API takes them."""

from typing import Any

import pytest
from wire.answers import answer, text

from toolrunner.facts import Content, Json, Text
from toolrunner.wire import CallKind, Provider, WireResult, result_item, result_messages

PLAIN: dict[Provider, dict[str, Any]] = {
    Provider.ANTHROPIC: {"type": "tool_result", "tool_use_id": "call_1", "content": [text("done")]},
    Provider.OPENAI_CHAT: {"role": "tool", "tool_call_id": "call_1", "content": "done"},
    Provider.OPENAI_RESPONSES: {"type": "function_call_output", "call_id": "call_1", "output": "done"},
    Provider.GEMINI: {"functionResponse": {"id": "call_1", "name": "read", "response": {"output": "done"}}},
    Provider.GEMINI_INTERACTIONS: {"type": "function_result", "call_id": "call_1", "name": "read", "result": "done"},
}

FAILED: dict[Provider, dict[str, Any]] = {
    Provider.ANTHROPIC: {"type": "tool_result", "tool_use_id": "call_1", "content": [text("done")], "is_error": True},
    Provider.OPENAI_CHAT: PLAIN[Provider.OPENAI_CHAT],
    Provider.OPENAI_RESPONSES: PLAIN[Provider.OPENAI_RESPONSES],
    Provider.GEMINI: {"functionResponse": {"id": "call_1", "name": "read", "response": {"error": "done"}}},
    Provider.GEMINI_INTERACTIONS: {**PLAIN[Provider.GEMINI_INTERACTIONS], "is_error": True},
}


@pytest.mark.parametrize("provider", list(Provider))
def test_a_text_result_is_the_provider_s_plain_form(provider: Provider) -> None:
    assert result_item(provider, answer()) == PLAIN[provider]


@pytest.mark.parametrize("provider", list(Provider))
def test_an_error_is_flagged_where_the_provider_has_a_flag(provider: Provider) -> None:
    assert result_item(provider, answer(is_error=True)) == FAILED[provider]


def test_the_toolset_of_an_anthropic_call_is_echoed_and_its_caller_is_not() -> None:
    item = result_item("anthropic", answer(provider_meta={"toolset_name": "browser", "caller": {"type": "direct"}}))
    assert item == {**PLAIN[Provider.ANTHROPIC], "toolset_name": "browser"}


CALLER = {"type": "program", "caller_id": "prog_1"}


@pytest.mark.parametrize(
    "result,expected",
    [
        (
            WireResult("c", "read", provider_meta={"namespace": "files", "caller": CALLER, "id": "fc_1"}, content=(Text("x"),)),
            {
                "type": "function_call_output",
                "call_id": "c",
                "namespace": "files",
                "name": "read",
                "output": "x",
                "caller": CALLER,
            },
        ),
        (
            WireResult("c", "sql", CallKind.CUSTOM, {"caller": CALLER}, (Text("x"),)),
            {"type": "custom_tool_call_output", "call_id": "c", "output": "x", "caller": CALLER},
        ),
        (
            WireResult("c", "shell", CallKind.SHELL, {"max_output_length": 10, "caller": CALLER}, (Text("x"),), exit_code=3),
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [{"stdout": "x", "stderr": "", "outcome": {"type": "exit", "exit_code": 3}}],
                "max_output_length": 10,
                "caller": CALLER,
            },
        ),
        (
            WireResult("c", "shell", CallKind.SHELL, {}, (Text("x"),), is_error=True, timed_out=True),
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [{"stdout": "x", "stderr": "", "outcome": {"type": "timeout"}}],
            },
        ),
        (
            WireResult("c", "shell", CallKind.SHELL, {}, (Text("x"),), is_error=True),
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [{"stdout": "x", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}],
            },
        ),
        (
            WireResult("c", "local_shell", CallKind.LOCAL_SHELL, {"id": "lsh_1"}, (Text("x"),)),
            {"type": "local_shell_call_output", "id": "c", "output": '"x"'},
        ),
        (
            WireResult("c", "apply_patch", CallKind.APPLY_PATCH, {}, (Text("x"),)),
            {"type": "apply_patch_call_output", "call_id": "c", "status": "completed", "output": "x"},
        ),
        (
            WireResult("c", "apply_patch", CallKind.APPLY_PATCH, {}, (Text("x"),), is_error=True),
            {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "x"},
        ),
    ],
)
def test_a_responses_call_is_answered_in_its_own_kind(result: WireResult, expected: dict[str, Any]) -> None:
    assert result_item("openai_responses", result) == expected


def test_a_shell_tool_s_own_chunks_are_passed_on_and_any_other_json_is_text() -> None:
    chunk: dict[str, Any] = {"stdout": "a", "stderr": "b", "outcome": {"type": "exit", "exit_code": 2}}
    own: Any
    for own in (chunk, [chunk], [chunk, chunk]):
        output = result_item("openai_responses", WireResult("c", "shell", CallKind.SHELL, content=(Json(own),)))["output"]
        assert output == (own if isinstance(own, list) else [own])
    other = result_item("openai_responses", WireResult("c", "shell", CallKind.SHELL, content=(Json([1]),)))["output"]
    assert other == [{"stdout": "[1]", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]


def test_a_gemini_call_without_an_id_is_answered_by_name_and_no_signature_is_put_on_the_answer() -> None:
    item = result_item("gemini", answer(None, provider_meta={"thoughtSignature": "c2ln"}))
    assert item == {"functionResponse": {"name": "read", "response": {"output": "done"}}}


@pytest.mark.parametrize("value", [{"a": [1, None]}, [1], 0, False, "x"])
def test_one_json_value_alone_is_structure_for_gemini(value: Any) -> None:
    item = result_item("gemini", answer(content=(Json(value),)))
    assert item["functionResponse"]["response"] == {"output": value}


def test_a_json_value_that_json_cannot_say_is_sent_as_text() -> None:
    item = result_item("gemini", answer(content=(Json(float("nan")),)))
    assert item["functionResponse"]["response"] == {"output": "NaN"}


def test_parallel_results_are_answered_together_in_call_order() -> None:
    results = [answer(f"c{number}", (Text(str(number)),)) for number in range(3)]
    (anthropic,) = result_messages("anthropic", results)
    assert [block["tool_use_id"] for block in anthropic["content"]] == ["c0", "c1", "c2"]
    assert [message["tool_call_id"] for message in result_messages("openai_chat", results)] == ["c0", "c1", "c2"]
    assert [item["call_id"] for item in result_messages("openai_responses", results)] == ["c0", "c1", "c2"]
    (gemini,) = result_messages("gemini", results)
    assert gemini["role"] == "user"
    assert [part["functionResponse"]["id"] for part in gemini["parts"]] == ["c0", "c1", "c2"]
    assert [step["call_id"] for step in result_messages("gemini_interactions", results)] == ["c0", "c1", "c2"]


@pytest.mark.parametrize("provider", list(Provider))
def test_no_results_are_no_messages(provider: Provider) -> None:
    assert result_messages(provider, []) == []


@pytest.mark.parametrize("provider", list(Provider))
@pytest.mark.parametrize("content", [(), (Text(""),), (Text(" \n"), Text("\t"))])
def test_blank_content_is_replaced_by_a_fixed_text(provider: Provider, content: tuple[Content, ...]) -> None:
    assert "(no output)" in str(result_item(provider, answer(content=content)))


def test_a_lone_surrogate_is_replaced_because_no_client_can_encode_it() -> None:
    assert result_item("openai_chat", answer(content=(Text("a\udc80b"),)))["content"] == "a?b"
