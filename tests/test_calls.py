"""A request to run a tool, made by a program or read from a provider."""

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from toolrunner import ToolCall
from toolrunner.errors import ConfigError
from toolrunner.wire import MalformedItem

ITEMS: dict[str, dict[str, Any]] = {
    "anthropic": {"type": "tool_use", "id": "c1", "name": "write", "input": {"path": "a"}},
    "openai_chat": {"type": "function", "id": "c1", "function": {"name": "write", "arguments": '{"path": "a"}'}},
    "openai_responses": {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "write", "arguments": '{"path": "a"}'},
    "gemini": {"functionCall": {"id": "c1", "name": "write", "args": {"path": "a"}}},
    "gemini_interactions": {"type": "function_call", "id": "c1", "name": "write", "arguments": {"path": "a"}},
}


def test_a_call_needs_a_name_and_nothing_else() -> None:
    call = ToolCall("write")
    assert call.arguments == {}
    assert (call.call_id, call.kind, call.idempotency_key, call.timeout) == (None, "function", None, None)
    assert (call.meta, call.provider_meta) == ({}, {})
    assert ToolCall("write").arguments is not call.arguments, "each has its own"


def test_a_call_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        ToolCall("write").name = "delete"  # type: ignore[misc]


@pytest.mark.parametrize("field", ["call_id", "idempotency_key"])
@pytest.mark.parametrize("value", [["c1"], {}, 1, b"c1", True], ids=repr)
def test_what_calls_are_known_by_is_text_or_nothing(field: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"{field} is .*; expected a string, or None"):
        ToolCall("write", **{field: value})


class SdkObject:
    def __init__(self, item: dict[str, Any]) -> None:
        self._item = item

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return self._item


@pytest.mark.parametrize("provider", ITEMS)
@pytest.mark.parametrize("wrap", [dict, SdkObject])
def test_a_call_is_read_from_a_provider(provider: str, wrap: Any) -> None:
    call = ToolCall.from_provider(provider, wrap(ITEMS[provider]))
    assert (call.name, call.call_id, call.kind) == ("write", "c1", "function")
    assert call.arguments in ({"path": "a"}, '{"path": "a"}')
    assert (call.timeout, call.idempotency_key, call.meta) == (None, None, {})


def test_what_the_provider_sent_along_is_kept() -> None:
    assert ToolCall.from_provider("openai_responses", ITEMS["openai_responses"]).provider_meta == {"id": "fc_1"}


def test_arguments_that_are_no_json_are_kept_for_row_two() -> None:
    item = {"type": "function_call", "call_id": "c1", "name": "write", "arguments": '{"path": '}
    assert ToolCall.from_provider("openai_responses", item).arguments == '{"path": '


@pytest.mark.parametrize("item", [None, 3, "x", {}, {"type": "text", "text": "hello"}])
def test_what_is_no_call_is_refused(item: Any) -> None:
    with pytest.raises(MalformedItem):
        ToolCall.from_provider("anthropic", item)


def test_a_provider_nobody_knows_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'anthropic'"):
        ToolCall.from_provider("antropic", {})


def test_a_call_whose_arguments_were_frozen_keeps_everything_else() -> None:
    given = ToolCall("write", '{"a": 1}', "c1", "custom", "key", 2.5, {"b": 1}, {"c": 1})
    assert all(getattr(given, one.name) != one.default for one in fields(given)), "each field has a value to lose"
    assert given.with_frozen({"a": 1}, {"b": 2}, {"c": 2}) == replace(
        given, arguments={"a": 1}, meta={"b": 2}, provider_meta={"c": 2}
    )
