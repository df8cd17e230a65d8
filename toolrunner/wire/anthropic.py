"""Anthropic Messages: tools, tool_use, tool_result. Pure.

Rules kept here (ids in cases/history.md): one user message answers a response, results first and in call order (AN1, AN4); no
blank text (AN7); server tools are left alone (AN12). `toolset_name` of a toolset's call is echoed, `caller` stays with the call.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, final

from toolrunner.facts import File, Image
from toolrunner.wire.media import PDF, WEB_IMAGES, Attachments, as_text, media_type, rendered
from toolrunner.wire.pairing import required_id
from toolrunner.wire.reading import Reader, entries, no_response, opened, parsed_object, sequence_at, with_meta, word
from toolrunner.wire.schema import checked_names, functions_only, object_schema
from toolrunner.wire.values import Item, Provider, ToolSpec, WireCall, WireResult

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")

_CUT = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})
"""Stop reasons after which the last block may be half a call."""


def media_part(item: Image | File) -> Item | None:
    kind = media_type(item)
    source = {"type": "base64", "media_type": kind, "data": item.data}
    if isinstance(item, File) and kind == PDF:
        return {"type": "document", "source": source, "title": item.name} if item.name else {"type": "document", "source": source}
    return {"type": "image", "source": source} if kind in WEB_IMAGES else None


@final
class AnthropicShape:
    """See `Shape`."""

    def tools(self, specs: Sequence[ToolSpec], *, strict: bool) -> list[Item]:
        """Build the tools; `strict` is not passed on: what is checked for is OpenAI's subset, which is not this API's."""
        del strict
        functions_only(Provider.ANTHROPIC, specs)
        return [_tool(spec) for spec in checked_names(Provider.ANTHROPIC, specs, _NAME)]

    def call(self, item: Mapping[str, Any]) -> WireCall:
        block = Reader(Provider.ANTHROPIC, "tool_use block", item)
        if item.get("type") != "tool_use":
            raise block.wrong(f"its type is {item.get('type')!r}; expected 'tool_use'")
        return WireCall(
            block.text("name"),
            block.arguments("input"),
            block.identifier("id"),
            provider_meta=block.rest("type", "name", "input", "id"),
        )

    def calls(self, response: object) -> list[WireCall]:
        message = opened(response) or {}
        if word(message, "stop_reason") in _CUT:
            return []
        blocks = response if isinstance(response, list | tuple) else sequence_at(message, "content")
        if blocks is None:
            if isinstance(message.get("content"), str):
                return []
            raise no_response(Provider.ANTHROPIC, response, "a message with a 'content' list, or that list")
        return [self.call(block) for block in entries(Provider.ANTHROPIC, "content", blocks) if word(block, "type") == "tool_use"]

    def call_item(self, call: WireCall) -> Item:
        call_id = required_id(Provider.ANTHROPIC, call)
        arguments = parsed_object(call.arguments)
        item = {"type": "tool_use", "id": call_id, "name": call.name, "input": arguments}
        return with_meta(item, call.provider_meta)

    def result_item(self, result: WireResult) -> Item:
        return _result(result, None)

    def result_messages(self, results: Sequence[WireResult]) -> list[Item]:
        if not results:
            return []
        # The reply to a call that a program made may hold results only, so media of failed calls get a placeholder there.
        programmatic = any(_is_programmatic(result) for result in results)
        attachments = None if programmatic else Attachments(media_part)
        blocks = [_result(result, attachments) for result in results]
        return [{"role": "user", "content": blocks + (attachments.parts if attachments else [])}]


def _tool(spec: ToolSpec) -> Item:
    described = {"description": spec.description} if spec.description.strip() else {}
    return {"name": spec.name, **described, "input_schema": object_schema(spec)}


def _is_programmatic(result: WireResult) -> bool:
    caller = result.provider_meta.get("caller")
    return isinstance(caller, Mapping) and caller.get("type") != "direct"


def _result(result: WireResult, attachments: Attachments | None) -> Item:
    block: Item = {"type": "tool_result", "tool_use_id": required_id(Provider.ANTHROPIC, result)}
    if result.is_error:
        # "all content must be type `text` if `is_error` is true" (the API's 400, seen in vellum-ai/vellum-assistant#18387).
        block |= {"content": [_text(as_text(result.content, attachments))], "is_error": True}
    else:
        block["content"] = [_text(part) if isinstance(part, str) else part for part in rendered(result.content, media_part)]
    if result.provider_meta.get("toolset_name"):
        block["toolset_name"] = result.provider_meta["toolset_name"]
    return block


def _text(text: str) -> Item:
    return {"type": "text", "text": text}
