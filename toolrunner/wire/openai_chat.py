"""OpenAI Chat Completions: tools, tool_calls, tool messages. Pure.

Rules kept here (ids in cases/history.md): one tool message per call, directly after one another (CH1); `arguments` is text (CH4).
A tool message takes text only, so images and PDFs follow in one user message after the last of them. There is no error field: the
text says it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, final

from toolrunner.errors import ConfigError
from toolrunner.facts import File, Image
from toolrunner.wire.media import PDF, WEB_IMAGES, Attachments, as_text, data_url, media_type
from toolrunner.wire.pairing import required_id
from toolrunner.wire.reading import (
    Reader,
    custom_input,
    described,
    entries,
    json_arguments,
    loaded,
    no_response,
    opened,
    with_meta,
    word,
)
from toolrunner.wire.schema import checked_names, object_schema, satisfies_strict
from toolrunner.wire.values import CallKind, Item, MalformedItem, Provider, ToolSpec, WireCall, WireResult

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_CUT = frozenset({"length", "content_filter"})
"""Finish reasons after which the last call may be half a call."""


def media_part(item: Image | File) -> Item | None:
    kind = media_type(item)
    if isinstance(item, File) and kind == PDF:
        return {"type": "file", "file": {"filename": item.name or "file.pdf", "file_data": data_url(item)}}
    return {"type": "image_url", "image_url": {"url": data_url(item)}} if kind in WEB_IMAGES else None


@final
class OpenAIChatShape:
    """See `Shape`."""

    def tools(self, specs: Sequence[ToolSpec], *, strict: bool) -> list[Item]:
        return [_tool(spec, strict=strict) for spec in checked_names(Provider.OPENAI_CHAT, specs, _NAME)]

    def call(self, item: Mapping[str, Any]) -> WireCall:
        call = Reader(Provider.OPENAI_CHAT, "tool call", item)
        kind = item.get("type") or "function"  # several compatible servers leave it out
        # `index` belongs to the stream the call came from; it is refused when sent back.
        call_id, meta = call.identifier("id"), call.rest("id", "type", "index", "function", "custom")
        if kind == "custom":
            custom = call.child("custom")
            return WireCall(custom.text("name"), {"input": custom.text("input")}, call_id, CallKind.CUSTOM, meta)
        if kind != "function":
            raise call.wrong(f"its type is {kind!r}; expected 'function' or 'custom'")
        function = call.child("function")
        return WireCall(function.text("name"), function.arguments("arguments"), call_id, provider_meta=meta)

    def calls(self, response: object) -> list[WireCall]:
        """Read the calls of the first choice: choices are alternatives, and running two of them would act twice."""
        body = opened(response) or {}
        if "choices" in body:
            body = _first_choice(body)
        elif not body.keys() & {"role", "content", "tool_calls"}:
            raise no_response(Provider.OPENAI_CHAT, response, "a completion with 'choices', or an assistant message")
        items = body.get("tool_calls") or []
        if not isinstance(items, list | tuple):
            raise MalformedItem(Provider.OPENAI_CHAT, "tool_calls", f"is {described(items)}; expected a list")
        return [self.call(item) for item in entries(Provider.OPENAI_CHAT, "tool_calls", items)]

    def call_item(self, call: WireCall) -> Item:
        item: Item = {"id": required_id(Provider.OPENAI_CHAT, call)}
        if call.kind == CallKind.CUSTOM:
            item |= {"type": "custom", "custom": {"name": call.name, "input": custom_input(call)}}
        else:
            item |= {"type": "function", "function": {"name": call.name, "arguments": _valid_json(call)}}
        return with_meta(item, call.provider_meta)

    def result_item(self, result: WireResult) -> Item:
        return _tool_message(result, None)

    def result_messages(self, results: Sequence[WireResult]) -> list[Item]:
        attachments = Attachments(media_part)
        messages = [_tool_message(result, attachments) for result in results]
        if not attachments.parts:
            return messages
        labelled = [
            part
            for number, attachment in enumerate(attachments.parts, start=1)
            for part in ({"type": "text", "text": f"[attachment {number}]"}, attachment)
        ]
        return [*messages, {"role": "user", "content": labelled}]


def _first_choice(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message of the first choice; an empty one when there is no choice or it was cut off."""
    choices = body["choices"] or []
    if not choices:
        return {}
    choice = opened(choices[0]) if isinstance(choices, list | tuple) else None
    message = opened(choice.get("message")) if choice is not None else None
    if choice is None or message is None:
        raise MalformedItem(Provider.OPENAI_CHAT, "choices", f"is {described(choices)}; expected choices with a 'message'")
    return {} if word(choice, "finish_reason") in _CUT else message


def _valid_json(call: WireCall) -> str:
    # Strict backends refuse a history with invalid arguments (CH4); the result of that call quotes what was wrong with them.
    text = json_arguments(call.arguments)
    return "{}" if loaded(text) is None else text


def _tool(spec: ToolSpec, *, strict: bool) -> Item:
    described = {"description": spec.description} if spec.description.strip() else {}
    if spec.kind == CallKind.CUSTOM:
        return {"type": "custom", "custom": {"name": spec.name, **described}}
    if spec.kind != CallKind.FUNCTION:
        raise ConfigError(f"kind of tool {spec.name!r}", str(spec.kind), "'function' or 'custom', the kinds that openai_chat has")
    parameters = object_schema(spec)
    flag = {"strict": True} if strict and satisfies_strict(parameters) else {}
    return {"type": "function", "function": {"name": spec.name, **described, "parameters": parameters, **flag}}


def _tool_message(result: WireResult, attachments: Attachments | None) -> Item:
    call_id = required_id(Provider.OPENAI_CHAT, result)
    return {"role": "tool", "tool_call_id": call_id, "content": as_text(result.content, attachments)}
