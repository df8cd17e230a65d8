"""Whatever a tool says and a model sends: results are always sendable, pairing is exact, calls survive the round trip."""

import base64
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.facts import Content, File, Image, Json, Text
from toolrunner.wire import CallKind, Provider, WireCall, WireResult, call_from_item, call_item, calls_in, result_messages

anything = st.text(st.characters(codec=None), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | anything,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=3),
    max_leaves=8,
)
data = st.binary(max_size=8).map(lambda raw: base64.b64encode(raw).decode()) | st.text(max_size=8)
media_types = st.sampled_from(
    ["image/png", "image/tiff", "image/jpg", "application/pdf", "text/plain", "application/json", "application/zip"]
) | st.text(max_size=8)
contents: st.SearchStrategy[Content] = st.one_of(
    anything.map(Text),
    json_values.map(Json),
    st.builds(Image, data, media_types),
    st.builds(File, data, media_types, anything),
)
ids = st.text("abcdef_0123", min_size=1, max_size=8)
metas = st.fixed_dictionaries(
    {},
    optional={
        "caller": st.sampled_from([{"type": "direct"}, {"type": "program", "caller_id": "p"}]),
        "toolset_name": st.just("browser"),
        "namespace": st.just("files"),
        "max_output_length": st.integers(1, 9),
        "thoughtSignature": st.just("c2ln"),
    },
)
results = st.builds(
    WireResult,
    ids,
    st.just("read"),
    st.sampled_from([kind.value for kind in CallKind]),
    metas,
    st.lists(contents, max_size=4).map(tuple),
    st.booleans(),
)
batches = st.lists(results, min_size=1, max_size=4, unique_by=lambda result: result.call_id)

ANSWERED_ID = {
    Provider.ANTHROPIC: lambda item: item.get("tool_use_id"),
    Provider.OPENAI_CHAT: lambda item: item.get("tool_call_id"),
    Provider.OPENAI_RESPONSES: lambda item: item.get("call_id", item.get("id")),
    Provider.GEMINI: lambda item: item.get("functionResponse", {}).get("id"),
    Provider.GEMINI_INTERACTIONS: lambda item: item.get("call_id"),
}


def items_of(provider: Provider, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    match provider:
        case Provider.ANTHROPIC:
            return [block for message in messages for block in message["content"]]
        case Provider.GEMINI:
            return [part for message in messages for part in message["parts"]]
        case _:
            return messages


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if value.get("type") in ("text", "input_text"):
            yield value["text"]
        for entry in value.values():
            yield from texts_in(entry)
    if isinstance(value, list):
        for entry in value:
            yield from texts_in(entry)


@pytest.mark.parametrize("provider", list(Provider))
@given(batch=batches)
def test_whatever_tools_said_the_messages_can_be_sent_and_the_results_stay_as_they_were(
    provider: Provider, batch: list[WireResult]
) -> None:
    before = copy.deepcopy(batch)
    messages = result_messages(provider, batch)
    json.dumps(messages, allow_nan=False, ensure_ascii=False).encode()
    assert repr(batch) == repr(before)
    # The same results give the same bytes, or the provider's prefix cache is lost.
    assert messages == result_messages(provider, batch)


@pytest.mark.parametrize("provider", list(Provider))
@given(batch=batches)
def test_every_call_is_answered_exactly_once_in_order_and_before_anything_else(
    provider: Provider, batch: list[WireResult]
) -> None:
    items = items_of(provider, result_messages(provider, batch))
    answered = [ANSWERED_ID[provider](item) for item in items]
    assert answered[: len(batch)] == [result.call_id for result in batch]
    assert all(call_id is None for call_id in answered[len(batch) :])


@pytest.mark.parametrize("provider", [Provider.ANTHROPIC, Provider.OPENAI_CHAT])
@given(batch=batches)
def test_no_text_block_is_ever_blank(provider: Provider, batch: list[WireResult]) -> None:
    assert all(text.strip() for text in texts_in(result_messages(provider, batch)))


@given(batch=batches)
def test_an_error_for_anthropic_holds_text_only(batch: list[WireResult]) -> None:
    (message,) = result_messages("anthropic", batch)
    for block in message["content"]:
        if block.get("is_error"):
            assert {part["type"] for part in block["content"]} == {"text"}


arguments = st.dictionaries(st.text(max_size=5), json_values.filter(lambda value: value == value), max_size=3)  # noqa: PLR0124  # NaN


@pytest.mark.parametrize("provider", list(Provider))
@given(call=st.builds(WireCall, ids, arguments, ids))
def test_a_call_survives_being_sent_back_and_read_again(provider: Provider, call: WireCall) -> None:
    again = call_from_item(provider, call_item(provider, call))
    if isinstance(again.arguments, str):
        assert again.arguments == json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":")) or again.arguments == "{}"
        again = WireCall(again.name, call.arguments, again.call_id)
    assert repr(again) == repr(call)


@given(
    call=st.one_of(
        st.builds(WireCall, st.just("sql"), st.fixed_dictionaries({"input": anything}), ids, st.just("custom")),
        st.builds(
            WireCall,
            st.just("shell"),
            st.fixed_dictionaries({"commands": st.lists(anything, max_size=2)}, optional={"timeout_ms": st.integers(1, 9)}),
            ids,
            st.just("shell"),
        ),
        st.builds(
            WireCall,
            st.just("apply_patch"),
            st.fixed_dictionaries({"type": st.just("delete_file"), "path": anything}),
            ids,
            st.just("apply_patch"),
        ),
    )
)
def test_a_responses_call_of_any_kind_survives_being_sent_back_and_read_again(call: WireCall) -> None:
    assert call_from_item("openai_responses", call_item("openai_responses", call)) == call


@pytest.mark.parametrize("provider", list(Provider))
@given(
    item=st.dictionaries(st.sampled_from(["type", "id", "call_id", "name", "input", "arguments", "functionCall"]), json_values)
)
def test_no_foreign_item_ever_raises_anything_but_our_own_error(provider: Provider, item: dict[str, Any]) -> None:
    try:
        call_from_item(provider, item)
    except ValueError as refused:
        assert type(refused).__name__ == "MalformedItem"  # noqa: PT017  # whether it is raised at all depends on the item


entry = st.dictionaries(
    st.sampled_from(["type", "id", "call_id", "name", "input", "status", "environment", "action", "functionCall", "function"]),
    json_values | st.sampled_from(["tool_use", "function_call", "shell_call", "shell_call_output", "function_result"]),
)


@pytest.mark.parametrize("provider", list(Provider))
@given(response=st.data())
def test_no_foreign_response_ever_raises_anything_but_our_own_error(provider: Provider, response: st.DataObject) -> None:
    place = {
        Provider.ANTHROPIC: "content",
        Provider.OPENAI_CHAT: "tool_calls",
        Provider.OPENAI_RESPONSES: "output",
        Provider.GEMINI: "parts",
        Provider.GEMINI_INTERACTIONS: "steps",
    }[provider]
    body = response.draw(st.dictionaries(st.sampled_from(["status", "stop_reason", "choices", "candidates"]), json_values))
    body[place] = response.draw(st.lists(entry, max_size=3) | json_values)
    try:
        calls_in(provider, body)
    except ValueError as refused:
        assert type(refused).__name__ == "MalformedItem"  # noqa: PT017  # whether it is raised at all depends on the response
