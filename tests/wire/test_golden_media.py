"""Media in results as each provider's API takes them: in place, after the results, or words that say why not."""

from typing import Any

import pytest
from wire.answers import MIXED, NOTES_TEXT, PDF, PNG, TIFF_TEXT, ZIP_TEXT, answer, text

from toolrunner.facts import Content, File, Image, Json, Text
from toolrunner.wire import Provider, result_item, result_messages


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
