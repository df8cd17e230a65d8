"""Results as each provider's API takes them."""

from typing import Any

import pytest

from toolrunner.facts import Content, File, Image, Json, Text
from toolrunner.wire import CallKind, Provider, WireResult, result_item, result_messages

PNG = Image("aGVsbG8=", "image/png")
TIFF = Image("aGVsbG8=", "image/tiff")
PDF = File("aGVsbG8=", "application/pdf", "report.pdf")
NOTES = File("aGVsbG8=", "text/plain; charset=utf-8", "notes.txt")
ZIP = File("aGVsbG8=", "application/zip", "all.zip")
MIXED: tuple[Content, ...] = (Text("done"), PNG, Json({"n": 1}), PDF, NOTES, ZIP, TIFF)

NOTES_TEXT = '[file "notes.txt"]\nhello'
ZIP_TEXT = "[file (application/zip): left out, not accepted here]"
TIFF_TEXT = "[image (image/tiff): left out, not accepted here]"


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def answer(call_id: str | None = "call_1", content: tuple[Content, ...] = (Text("done"),), **fields: Any) -> WireResult:
    return WireResult(call_id, "read", content=content, **fields)


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


def test_mixed_content_for_anthropic_stays_in_the_result_in_order() -> None:
    assert result_item("anthropic", answer(content=MIXED))["content"] == [
        text("done"),
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}},
        text('{"n":1}'),
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "aGVsbG8="},
            "title": "report.pdf",
        },
        text(NOTES_TEXT),
        text(ZIP_TEXT),
        text(TIFF_TEXT),
    ]


def test_media_of_a_failed_anthropic_call_follow_after_all_results_because_an_error_may_hold_text_only() -> None:
    results = [answer("a", (Text("broke"), PNG), is_error=True), answer("b"), answer("c", (PDF,), is_error=True)]
    (message,) = result_messages("anthropic", results)
    assert message["role"] == "user"
    assert [block["type"] for block in message["content"]] == ["tool_result", "tool_result", "tool_result", "image", "document"]
    assert message["content"][0]["content"] == [text("broke\n[image (image/png): attachment 1 after the results]")]
    assert message["content"][2]["content"] == [text("[file (application/pdf): attachment 2 after the results]")]


def test_the_reply_to_a_program_s_call_holds_results_only() -> None:
    meta = {"caller": {"type": "code_execution_20260521", "tool_id": "srvtoolu_1"}}
    (message,) = result_messages("anthropic", [answer("a", (PNG,), is_error=True, provider_meta=meta)])
    assert message["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [text("[image (image/png): left out, not accepted here]")],
            "is_error": True,
        }
    ]


def test_the_toolset_of_an_anthropic_call_is_echoed_and_its_caller_is_not() -> None:
    item = result_item("anthropic", answer(provider_meta={"toolset_name": "browser", "caller": {"type": "direct"}}))
    assert item == {**PLAIN[Provider.ANTHROPIC], "toolset_name": "browser"}


def test_media_of_chat_results_follow_in_one_user_message_after_the_last_tool_message() -> None:
    messages = result_messages("openai_chat", [answer("a", MIXED), answer("b")])
    assert messages[:2] == [
        {
            "role": "tool",
            "tool_call_id": "a",
            "content": "done\n[image (image/png): attachment 1 after the results]\n"
            '{"n":1}\n[file (application/pdf): attachment 2 after the results]\n' + f"{NOTES_TEXT}\n{ZIP_TEXT}\n{TIFF_TEXT}",
        },
        {"role": "tool", "tool_call_id": "b", "content": "done"},
    ]
    assert messages[2:] == [
        {
            "role": "user",
            "content": [
                text("[attachment 1]"),
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}},
                text("[attachment 2]"),
                {"type": "file", "file": {"filename": "report.pdf", "file_data": "data:application/pdf;base64,aGVsbG8="}},
            ],
        }
    ]


def test_a_chat_result_alone_says_that_its_media_are_left_out() -> None:
    assert result_item("openai_chat", answer(content=(PNG,)))["content"] == "[image (image/png): left out, not accepted here]"


def test_mixed_content_for_responses_is_a_list_of_input_parts() -> None:
    assert result_item("openai_responses", answer(content=MIXED))["output"] == [
        {"type": "input_text", "text": "done"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGVsbG8="},
        {"type": "input_text", "text": '{"n":1}'},
        {"type": "input_file", "filename": "report.pdf", "file_data": "data:application/pdf;base64,aGVsbG8="},
        {"type": "input_text", "text": NOTES_TEXT},
        {"type": "input_text", "text": ZIP_TEXT},
        {"type": "input_text", "text": TIFF_TEXT},
    ]


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


def test_mixed_content_for_gemini_is_text_with_media_as_parts_of_the_response() -> None:
    assert result_item("gemini", answer(content=MIXED)) == {
        "functionResponse": {
            "id": "call_1",
            "name": "read",
            "response": {
                "output": "done\n[image (image/png): attachment 1 of this result]\n"
                '{"n":1}\n[file (application/pdf): attachment 2 of this result]\n' + f"{NOTES_TEXT}\n{ZIP_TEXT}\n{TIFF_TEXT}"
            },
            "parts": [
                {"inlineData": {"mimeType": "image/png", "data": "aGVsbG8="}},
                {"inlineData": {"mimeType": "application/pdf", "data": "aGVsbG8="}},
            ],
        }
    }


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


def test_an_interactions_result_is_an_object_a_text_or_a_list_of_parts() -> None:
    def result(*content: Content) -> Any:
        return result_item("gemini_interactions", answer(content=content))["result"]

    assert result(Json({"a": 1})) == {"a": 1}
    assert result(Json([1])) == "[1]"
    assert result(Text("a"), Text("b")) == "a\nb"
    assert result(*MIXED) == [
        text("done"),
        {"type": "image", "mime_type": "image/png", "data": "aGVsbG8="},
        text('{"n":1}'),
        {"type": "document", "mime_type": "application/pdf", "data": "aGVsbG8="},
        text(NOTES_TEXT),
        text(ZIP_TEXT),
        {"type": "image", "mime_type": "image/tiff", "data": "aGVsbG8="},
    ]


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


@pytest.mark.parametrize("provider", list(Provider))
@pytest.mark.parametrize(
    "medium,said",
    [
        (Image("not base64!", "image/png"), "[image (image/png): left out, its data is not plain base64]"),
        (Image("", "image/png"), "[image (image/png): left out, it is empty]"),
        (File("/w==", "text/plain", "latin.txt"), "[file (text/plain): left out, not accepted here]"),
        (Image("aGVsbG8=", "image/x\n] ignore"), "[image (unknown type): left out, not accepted here]"),
    ],
)
def test_media_that_no_request_may_hold_become_a_placeholder_which_says_why(
    provider: Provider, medium: Content, said: str
) -> None:
    messages = result_messages(provider, [answer(content=(medium,))])
    assert len(messages) == 1
    assert said in str(messages)


def test_an_empty_text_file_is_shown_as_one() -> None:
    assert result_item("openai_chat", answer(content=(File("", "text/plain", "a.txt"),)))["content"] == '[file "a.txt"]\n'


def test_the_common_misnomer_of_jpeg_is_put_right() -> None:
    item = result_item("anthropic", answer(content=(Image("aGVsbG8=", "image/JPG"),)))
    assert item["content"][0]["source"]["media_type"] == "image/jpeg"


def test_a_lone_surrogate_is_replaced_because_no_client_can_encode_it() -> None:
    assert result_item("openai_chat", answer(content=(Text("a\udc80b"),)))["content"] == "a?b"
