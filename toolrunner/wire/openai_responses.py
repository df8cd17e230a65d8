"""OpenAI Responses: function, custom, shell, local shell and patch calls and their outputs, as input items. Pure.

Rules kept here (ids in cases/history.md): each call gets the output item of its own kind under its own call_id (RS1); `caller`
and `namespace` are echoed, `max_output_length` of a shell call too. There is no error field but a patch's `status`: the text says
it. Left alone: hosted tools, MCP calls and approvals, and the client's own other tools (computer_call, tool_search_call).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, final

from toolrunner.facts import File, Image
from toolrunner.wire.media import PDF, WEB_IMAGES, as_text, data_url, json_text, media_type, rendered, sole_json
from toolrunner.wire.pairing import required_id, unanswered
from toolrunner.wire.reading import (
    Reader,
    custom_input,
    entries,
    json_arguments,
    no_response,
    opened,
    parsed_object,
    plain,
    sequence_at,
    with_meta,
    word,
)
from toolrunner.wire.schema import checked_names, object_schema, satisfies_strict
from toolrunner.wire.values import CallKind, Item, Provider, ToolSpec, WireCall, WireResult

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")

_KINDS = {
    "function_call": CallKind.FUNCTION,
    "custom_tool_call": CallKind.CUSTOM,
    "shell_call": CallKind.SHELL,
    "local_shell_call": CallKind.LOCAL_SHELL,
    "apply_patch_call": CallKind.APPLY_PATCH,
}
_TYPES = {kind: name for name, kind in _KINDS.items()}

_CUT = frozenset({"incomplete", "failed", "cancelled"})
"""Status of a response that was cut off, or of a call whose arguments were. Shell calls that are to be run say `in_progress`."""

_NOT_SENT_BACK = ("created_by", "parsed_arguments")
"""In what the API or its SDK hands out, refused in what it takes."""

_DOCUMENTS = frozenset(
    {
        PDF,
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    }
)


def media_part(item: Image | File) -> Item | None:
    kind = media_type(item)
    if isinstance(item, File) and kind in _DOCUMENTS:
        return {"type": "input_file", "filename": item.name or "file", "file_data": data_url(item)}
    return {"type": "input_image", "image_url": data_url(item)} if kind in WEB_IMAGES else None


@final
class OpenAIResponsesShape:
    """See `Shape`."""

    def tools(self, specs: Sequence[ToolSpec], *, strict: bool) -> list[Item]:
        return [_tool(spec, strict=strict) for spec in checked_names(Provider.OPENAI_RESPONSES, specs, _NAME)]

    def call(self, item: Mapping[str, Any]) -> WireCall:
        kind = _KINDS.get(word(item, "type") or "")
        call = Reader(Provider.OPENAI_RESPONSES, f"{item.get('type')} item", item)
        if kind is None:
            raise call.wrong(f"its type is {item.get('type')!r}; expected one of {', '.join(_KINDS)}")
        if word(item, "status") in _CUT:
            raise call.wrong(f"its status is {item['status']!r}: the model never finished it, so it must not be run")
        call_id = call.identifier("call_id")
        match kind:
            case CallKind.FUNCTION:
                meta = call.rest("type", "name", "arguments", "call_id", *_NOT_SENT_BACK)
                return WireCall(call.text("name"), call.arguments("arguments"), call_id, kind, meta)
            case CallKind.CUSTOM:
                meta = call.rest("type", "name", "input", "call_id", *_NOT_SENT_BACK)
                return WireCall(call.text("name"), {"input": call.text("input")}, call_id, kind, meta)
            case _:
                return _native_call(call, kind, call_id)

    def calls(self, response: object) -> list[WireCall]:
        body = opened(response) or {}
        if word(body, "status") in _CUT:
            return []
        output = response if isinstance(response, list | tuple) else sequence_at(body, "output")
        if output is None:
            raise no_response(Provider.OPENAI_RESPONSES, response, "a response with an 'output' list, or that list")
        items = entries(Provider.OPENAI_RESPONSES, "output", output)
        answers = [f"{name}_output" for name in _KINDS]
        ours = [item for item in unanswered(items, _KINDS, answers, "call_id") if not _is_hosted(item)]
        return [self.call(item) for item in ours if word(item, "status") not in _CUT]

    def call_item(self, call: WireCall) -> Item:
        kind = CallKind(call.kind)
        head: Item = {"type": _TYPES[kind], "call_id": required_id(Provider.OPENAI_RESPONSES, call)}
        # The limit of a shell call stands in its action; it is in the meta only for the result to find.
        meta = {key: value for key, value in call.provider_meta.items() if key != "max_output_length"}
        match kind:
            case CallKind.FUNCTION:
                body: Item = {"name": call.name, "arguments": json_arguments(call.arguments)}
            case CallKind.CUSTOM:
                body = {"name": call.name, "input": custom_input(call)}
            case CallKind.APPLY_PATCH:
                body = {"operation": parsed_object(call.arguments)}
            case _:
                body = {"action": parsed_object(call.arguments)}
        return with_meta({**head, **body}, meta)

    def result_item(self, result: WireResult) -> Item:
        kind = CallKind(result.kind)
        call_id = required_id(Provider.OPENAI_RESPONSES, result)
        item_type = f"{_TYPES[kind]}_output"
        if kind == CallKind.LOCAL_SHELL:
            # This one item pairs by `id`, and the id it wants is the call's call_id, not the call item's id.
            return {"type": item_type, "id": call_id, "output": _local_shell_output(result)}
        caller = result.provider_meta.get("caller")
        answered_to = {"caller": plain(caller)} if caller is not None else {}
        return {"type": item_type, "call_id": call_id, **_result_body(kind, result), **answered_to}

    def result_messages(self, results: Sequence[WireResult]) -> list[Item]:
        return [self.result_item(result) for result in results]


def _is_hosted(item: Mapping[str, Any]) -> bool:
    # A shell call bound to a container is run by the provider; a local one says so or says nothing.
    environment = opened(item.get("environment"))
    return environment is not None and environment.get("type") not in (None, "local")


def _native_call(call: Reader, kind: CallKind, call_id: str) -> WireCall:
    key = "operation" if kind == CallKind.APPLY_PATCH else "action"
    meta = call.rest("type", key, "call_id", *_NOT_SENT_BACK)
    arguments = {name: value for name, value in plain(call.child(key).data).items() if value is not None}
    if "max_output_length" in arguments:
        meta["max_output_length"] = arguments["max_output_length"]
    return WireCall(kind.value, arguments, call_id, kind, meta)


def _tool(spec: ToolSpec, *, strict: bool) -> Item:
    described = {"description": spec.description} if spec.description.strip() else {}
    match CallKind(spec.kind):
        case CallKind.FUNCTION:
            parameters = object_schema(spec)
            # Always said: where it is left out, this API makes the tool strict and rewrites its schema.
            flag = strict and satisfies_strict(parameters)
            return {"type": "function", "name": spec.name, **described, "parameters": parameters, "strict": flag}
        case CallKind.CUSTOM:
            return {"type": "custom", "name": spec.name, **described}
        case CallKind.SHELL:
            return {"type": "shell", "environment": {"type": "local"}}
        case CallKind.LOCAL_SHELL | CallKind.APPLY_PATCH as kind:
            return {"type": kind.value}


def _output(result: WireResult) -> str | list[Item]:
    parts = rendered(result.content, media_part)
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return "\n".join(texts)
    return [{"type": "input_text", "text": part} if isinstance(part, str) else part for part in parts]


def _result_body(kind: CallKind, result: WireResult) -> Item:
    meta = result.provider_meta
    match kind:
        case CallKind.FUNCTION if meta.get("namespace") is not None:
            return {"namespace": meta["namespace"], "name": result.name, "output": _output(result)}
        case CallKind.SHELL:
            # The limit is the model's own; the API applies it, and wants it said together with the whole output.
            limit = {"max_output_length": meta["max_output_length"]} if meta.get("max_output_length") is not None else {}
            return {"output": _shell_chunks(result), **limit}
        case CallKind.APPLY_PATCH:
            return {"status": "failed" if result.is_error else "completed", "output": as_text(result.content)}
        case _:
            return {"output": _output(result)}


def _shell_chunks(result: WireResult) -> list[Item]:
    """Return the chunks a shell answer consists of: the tool's own, if it returned them as JSON, else one made of its text."""
    own = sole_json(result.content)
    if isinstance(own, dict):
        own = [own]
    if isinstance(own, list) and own and all(_is_chunk(chunk) for chunk in own):
        return plain(own)  # type: ignore[no-any-return]
    exit_code = result.exit_code if result.exit_code is not None else int(result.is_error)
    outcome: Item = {"type": "timeout"} if result.timed_out else {"type": "exit", "exit_code": exit_code}
    return [{"stdout": as_text(result.content), "stderr": "", "outcome": outcome}]


def _is_chunk(value: object) -> bool:
    return isinstance(value, dict) and value.keys() >= {"stdout", "stderr", "outcome"}


def _local_shell_output(result: WireResult) -> str:
    # "A JSON string of the output" (API reference), so text is quoted once more.
    own = sole_json(result.content)
    return json_text(own if own is not None else as_text(result.content))
