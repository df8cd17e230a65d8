"""Gemini Interactions: function tools, function_call steps, function_result steps. Pure.

Every result is one step, paired by `call_id`, with an error flag and content of text, images and documents. The steps are the
`input` of the next interaction, after the history's own steps where the server does not hold them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, final

from toolrunner.facts import File, Image
from toolrunner.wire.media import PDF, media_type, rendered, sole_json
from toolrunner.wire.pairing import required_id, unanswered
from toolrunner.wire.reading import Reader, entries, no_response, opened, parsed_object, plain, sequence_at, with_meta, word
from toolrunner.wire.schema import GEMINI_NAME, checked_names, functions_only, gemini_schema
from toolrunner.wire.values import Item, Provider, ToolSpec, WireCall, WireResult

_CUT = frozenset({"failed", "cancelled", "incomplete", "budget_exceeded"})
"""Status of an interaction that was cut off and may hold half a call."""

_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "image/gif", "image/bmp", "image/tiff"})


def media_part(item: Image | File) -> Item | None:
    kind = media_type(item)
    if kind in _IMAGES:
        return {"type": "image", "mime_type": kind, "data": item.data}
    return {"type": "document", "mime_type": kind, "data": item.data} if kind == PDF else None


@final
class GeminiInteractionsShape:
    """See `Shape`."""

    def tools(self, specs: Sequence[ToolSpec], *, strict: bool) -> list[Item]:
        """Build the tools; there is no strict mode per function."""
        del strict
        functions_only(Provider.GEMINI_INTERACTIONS, specs)
        return [_tool(spec) for spec in checked_names(Provider.GEMINI_INTERACTIONS, specs, GEMINI_NAME)]

    def call(self, item: Mapping[str, Any]) -> WireCall:
        step = Reader(Provider.GEMINI_INTERACTIONS, "step", item)
        if item.get("type") != "function_call":
            raise step.wrong(f"its type is {item.get('type')!r}; expected 'function_call'")
        return WireCall(
            step.text("name"),
            step.arguments("arguments"),
            step.identifier("id"),
            provider_meta=step.rest("type", "name", "arguments", "id"),
        )

    def calls(self, response: object) -> list[WireCall]:
        interaction = opened(response) or {}
        if word(interaction, "status") in _CUT:
            return []
        steps = response if isinstance(response, list | tuple) else sequence_at(interaction, "steps")
        if steps is None:
            raise no_response(Provider.GEMINI_INTERACTIONS, response, "an interaction with a 'steps' list, or that list")
        items = entries(Provider.GEMINI_INTERACTIONS, "steps", steps)
        return [self.call(item) for item in unanswered(items, ["function_call"], ["function_result"], "id")]

    def call_item(self, call: WireCall) -> Item:
        call_id = required_id(Provider.GEMINI_INTERACTIONS, call)
        arguments = parsed_object(call.arguments)
        item = {"type": "function_call", "id": call_id, "name": call.name, "arguments": arguments}
        return with_meta(item, call.provider_meta)

    def result_item(self, result: WireResult) -> Item:
        call_id = required_id(Provider.GEMINI_INTERACTIONS, result)
        step: Item = {"type": "function_result", "call_id": call_id, "name": result.name, "result": _result(result)}
        return {**step, "is_error": True} if result.is_error else step

    def result_messages(self, results: Sequence[WireResult]) -> list[Item]:
        return [self.result_item(result) for result in results]


def _result(result: WireResult) -> Item | list[Item] | str:
    own = sole_json(result.content)
    if isinstance(own, dict):  # a list would be taken for content parts, a number is not accepted
        return plain(own)  # type: ignore[no-any-return]
    parts = rendered(result.content, media_part)
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return "\n".join(texts)
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]


def _tool(spec: ToolSpec) -> Item:
    described = {"description": spec.description} if spec.description.strip() else {}
    return {"type": "function", "name": spec.name, **described, "parameters": gemini_schema(spec)}
