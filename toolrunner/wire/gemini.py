"""Gemini generateContent: functionDeclarations, functionCall, functionResponse. Pure.

Rules kept here (ids in cases/history.md): one user content with as many functionResponse parts as there were calls, in call order
(GM1, GM2); ids and names echoed (GM3); a call's thoughtSignature is kept for the call's own part, where it must stay (GM4);
`args` is an object (GM5). Reads both spellings, `functionCall` of REST and `function_call` of dumped SDK objects;
writes that of REST.
"""

from collections.abc import Mapping, Sequence
from typing import Any, final

from toolrunner.facts import File, Image
from toolrunner.wire.media import PDF, Attachments, as_text, media_type, sole_json
from toolrunner.wire.reading import Reader, entries, no_response, opened, parsed_object, plain, sequence_at, with_meta, word
from toolrunner.wire.schema import GEMINI_NAME, checked_names, functions_only, gemini_schema
from toolrunner.wire.values import Item, Provider, ToolSpec, WireCall, WireResult

_WHOLE = frozenset({None, "STOP", "FINISH_REASON_UNSPECIFIED"})
"""Finish reasons of a candidate that was not cut off; every other one may leave half a call."""

_RESPONSE_MEDIA = frozenset({"image/png", "image/jpeg", "image/webp", PDF})
"""What a functionResponse takes as `parts` (Gemini 3 and later; "Function calling", multimodal function responses)."""


def media_part(item: Image | File) -> Item | None:
    kind = media_type(item)
    return {"inlineData": {"mimeType": kind, "data": item.data}} if kind in _RESPONSE_MEDIA else None


def _field(mapping: Mapping[str, Any], camel: str, snake: str) -> object:
    return mapping[camel] if mapping.get(camel) is not None else mapping.get(snake)


def _function_call(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return opened(_field(part, "functionCall", "function_call"))


@final
class GeminiShape:
    """See `Shape`."""

    def tools(self, specs: Sequence[ToolSpec], *, strict: bool) -> list[Item]:
        """Build one tool that declares all functions; there is no strict mode per function."""
        del strict
        functions_only(Provider.GEMINI, specs)
        declarations = [_declaration(spec) for spec in checked_names(Provider.GEMINI, specs, GEMINI_NAME)]
        return [{"functionDeclarations": declarations}] if declarations else []

    def call(self, item: Mapping[str, Any]) -> WireCall:
        """Read a part with a functionCall, or a bare functionCall (which has lost its signature)."""
        inner = _function_call(item)
        meta: Item = {}
        if inner is not None:
            known = ("functionCall", "function_call", "thoughtSignature", "thought_signature")
            meta = Reader(Provider.GEMINI, "part", item).rest(*known)
            signature = _field(item, "thoughtSignature", "thought_signature")
            meta |= {"thoughtSignature": plain(signature)} if signature is not None else {}
        elif "name" in item:
            inner = item
        else:
            raise Reader(Provider.GEMINI, "part", item).wrong(f"has no functionCall, only {', '.join(item) or 'nothing'}")
        call = Reader(Provider.GEMINI, "functionCall", inner)
        if _field(inner, "willContinue", "will_continue") or _field(inner, "partialArgs", "partial_args"):
            raise call.wrong("is a piece of a streamed call; expected the whole call")
        return WireCall(call.text("name"), call.arguments("args"), call.optional_identifier("id"), provider_meta=meta)

    def calls(self, response: object) -> list[WireCall]:
        """Read the calls of the first candidate: candidates are alternatives, and running two of them would act twice."""
        body = opened(response) or {}
        if isinstance(response, list | tuple):
            parts: Sequence[object] | None = response
        elif body.keys() & {"candidates", "promptFeedback", "prompt_feedback"}:
            parts = _first_candidate(body)
        else:
            parts = sequence_at(body, "parts")
        if parts is None:
            raise no_response(Provider.GEMINI, response, "a response with 'candidates', a content with 'parts', or that list")
        return [self.call(part) for part in entries(Provider.GEMINI, "parts", parts) if _function_call(part) is not None]

    def call_item(self, call: WireCall) -> Item:
        called_by_id = {"id": call.call_id} if call.call_id else {}
        function_call = {**called_by_id, "name": call.name, "args": parsed_object(call.arguments)}
        return with_meta({"functionCall": function_call}, call.provider_meta)

    def result_item(self, result: WireResult) -> Item:
        answered_by_id = {"id": result.call_id} if result.call_id else {}
        key = "error" if result.is_error else "output"
        own = sole_json(result.content)
        if own is not None:
            return {"functionResponse": {**answered_by_id, "name": result.name, "response": {key: plain(own)}}}
        attachments = Attachments(media_part, "of this result")
        response = {key: as_text(result.content, attachments)}
        parts = {"parts": attachments.parts} if attachments.parts else {}
        return {"functionResponse": {**answered_by_id, "name": result.name, "response": response, **parts}}

    def result_messages(self, results: Sequence[WireResult]) -> list[Item]:
        parts = [self.result_item(result) for result in results]
        return [{"role": "user", "parts": parts}] if parts else []


def _first_candidate(body: Mapping[str, Any]) -> Sequence[object] | None:
    """Return the parts of the first candidate; none when it was cut off, said nothing, or the prompt was blocked."""
    candidates = body.get("candidates") or []
    if not isinstance(candidates, list | tuple):
        return None
    candidate = opened(candidates[0]) if candidates else {}
    if candidate is None:
        return None
    cut = word(candidate, "finishReason", "finish_reason") not in _WHOLE
    return [] if cut else sequence_at(candidate, "content", "parts") or []


def _declaration(spec: ToolSpec) -> Item:
    described = {"description": spec.description} if spec.description.strip() else {}
    schema = gemini_schema(spec)
    # A function without parameters is declared without a schema: an object with no properties was refused for long.
    parameters = {"parametersJsonSchema": schema} if schema["properties"] else {}
    return {"name": spec.name, **described, **parameters}
