"""From a provider's messages to a history: the way in for conversations that were held without a log. Pure; no state.

Sent to the same provider again a history that was read is what it was, but for the form of texts (a string becomes a block); sent
to another one it holds what that one can take. What nobody here knows is kept as the provider's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolrunner.facts import Content, File, Image, Json, Text
from toolrunner.history.atoms import Atom, ConversationShape, Kind, Side, grouped, take_apart
from toolrunner.history.entries import Entry, History, Marked, Noted, Replied, Said
from toolrunner.history.pairing import paired
from toolrunner.history.shapes import shape_of
from toolrunner.markers import is_host_text, marker_reason
from toolrunner.records import Block, CallBlock, ReasoningBlock, RedactedBlock, TextBlock, UnknownBlock
from toolrunner.wire import CallKind, Item, Provider, WireCall, WireResult
from toolrunner.wire.reading import json_arguments

__all__ = ["read_messages"]


def read_messages(messages: Sequence[object], provider: str, model: str = "") -> History:
    """The history that these messages hold. `model`: who is taken to have made, and sealed, the model's part.

    A call without a result has an answer that is still to come; a result without a call is left out (`repair` first, where that
    matters). System messages are no part of a history.

    Raises:
        ConfigError: the provider is unknown.
        MalformedItem: a message or a call is not of the form its API promises.
    """
    shape = shape_of(provider)
    groups = grouped(shape, take_apart(shape, messages))
    answers = paired(shape, groups).answers
    entries, said = list[Entry](), list[Atom]()
    for number, side, atoms in _turns(shape, groups):
        if side is Side.MODEL:
            entries.append(_reply(shape, atoms, answers, model, number))
        elif side is Side.USER:
            said = [atom for atom in atoms if atom.kind not in (Kind.RESULT, Kind.BLANK)]
            entries += _user(shape, said, number)
    return History(tuple(entry for entry in entries if not isinstance(entry, Replied) or entry.blocks))


def _turns(shape: ConversationShape, groups: Sequence[list[Atom]]) -> list[tuple[int, Side, list[Atom]]]:
    """Messages of one side; where a thought, a text or a call is an item of its own, those of one reply together."""
    turns = list[tuple[int, Side, list[Atom]]]()
    by_items = shape.inner == ""
    for number, group in enumerate(groups, start=1):
        side = group[0].side
        if by_items and side is Side.MODEL and turns and turns[-1][1] is Side.MODEL:
            turns[-1][2].extend(group)
        else:
            turns.append((number, side, list(group)))
    return turns


def _reply(shape: ConversationShape, atoms: Sequence[Atom], answers: Mapping[Atom, Atom], model: str, number: int) -> Replied:
    blocks, told = list[Block](), list[WireResult | None]()
    for atom in atoms:
        if atom.kind is Kind.CALL:
            call = shape.wire_call(atom)
            blocks.append(_call(call))
            result = answers.get(atom)
            told.append(_result(shape.provider, call, result.item) if result is not None else None)
        else:
            blocks += _words(shape.provider, atom)
    return Replied(shape.provider, model, tuple(blocks), tuple(told), seq=number)


def _call(call: WireCall) -> CallBlock:
    arguments = call.arguments
    if call.kind == CallKind.CUSTOM and isinstance(arguments, Mapping):
        arguments = str(arguments.get("input", ""))
    return CallBlock(call.name, json_arguments(arguments), call.call_id, call.kind, provider_meta=call.provider_meta)


def _words(provider: Provider, atom: Atom) -> list[Block]:
    item = atom.item
    match atom.kind:
        case Kind.BLANK | Kind.HEAD:
            return _thought_beside(item)
        case Kind.THINKING:
            return [_thought(provider, item)]
        case Kind.TEXT if (text := _text(item)) is not None:
            item_id = item.get("id") if provider is Provider.OPENAI_RESPONSES else None
            signature = item.get("thoughtSignature") or item.get("thought_signature")
            return [*_thought_beside(item), TextBlock(text, True, item_id, signature)]
        case _:
            return [UnknownBlock(item)]


def _thought_beside(item: Item) -> list[Block]:
    thought = item.get("reasoning_content")
    return [ReasoningBlock(thought)] if isinstance(thought, str) and thought else []


def _thought(provider: Provider, item: Item) -> Block:
    match provider:
        case Provider.ANTHROPIC if item.get("type") == "redacted_thinking":
            return RedactedBlock(str(item.get("data") or ""))
        case Provider.ANTHROPIC:
            return ReasoningBlock(str(item.get("thinking") or ""), signature=item.get("signature"))
        case Provider.OPENAI_RESPONSES:
            summary = [part.get("text", "") for part in item.get("summary") or () if isinstance(part, dict)]
            # More than one part is kept as it came: joined, it would not be the thought that was sealed.
            meta = {"summary": item["summary"]} if len(summary) > 1 else {}
            return ReasoningBlock("\n".join(summary), True, None, item.get("encrypted_content"), item.get("id"), meta)
        case Provider.GEMINI_INTERACTIONS:
            return ReasoningBlock(_text({"content": item.get("summary")}) or "", signature=item.get("signature"))
        case _:
            return UnknownBlock(item) if item.get("thoughtSignature") else ReasoningBlock(str(item.get("text") or ""))


def _text(item: Item) -> str | None:
    """The text of an item that is nothing but text."""
    for key in ("text", "content"):
        value = item.get(key)
        if isinstance(value, str):
            return value
        if (
            isinstance(value, list)
            and value
            and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in value)
        ):
            return "".join(part["text"] for part in value)
    return None


def _user(shape: ConversationShape, atoms: Sequence[Atom], number: int) -> list[Entry]:
    entries, content = list[Entry](), list[Content]()
    for atom in atoms:
        text = _text(atom.item) if atom.kind is Kind.TEXT else None
        if text is not None and is_host_text(text):
            entries += [Said(tuple(content), seq=number)] if content else []
            content = []
            reason = marker_reason(text)
            entries.append(Marked(reason, number) if reason is not None else Noted(text, number))
        else:
            content += _content(shape.provider, atom.item)
    return [*entries, Said(tuple(content), seq=number)] if content else entries


def _content(provider: Provider, item: Any) -> list[Content]:
    """What a message or a part of it says; a part that nobody here knows is kept as JSON."""
    if isinstance(item, str):
        return [Text(item)]
    parts = item.get("content") if "content" in item else None
    if isinstance(parts, str):
        return [Text(parts)]
    if isinstance(parts, list):
        return [one for part in parts for one in _content(provider, part)]
    if isinstance(item.get("text"), str):
        return [Text(item["text"])]
    medium = _medium(item)
    return [medium if medium is not None else Json(item)]


def _medium(part: Item) -> Content | None:
    """An image or document whose data is in the message."""
    source = part.get("source") if isinstance(part.get("source"), dict) else part.get("inlineData") or part
    if not isinstance(source, dict):
        return None
    kind, data = source.get("media_type") or source.get("mimeType") or source.get("mime_type"), source.get("data")
    url = part.get("image_url") or part.get("file_data")
    url = url.get("url") if isinstance(url, dict) else url
    if isinstance(url, str) and url.startswith("data:") and ";base64," in url:
        kind, data = url.removeprefix("data:").split(";base64,", 1)
    if not isinstance(kind, str) or not isinstance(data, str):
        return None
    name = part.get("title") or part.get("filename") or ""
    return Image(data, kind) if kind.startswith("image/") else File(data, kind, str(name))


def _result(provider: Provider, call: WireCall, item: Item) -> WireResult:
    base = WireResult(call.call_id, call.name, call.kind, call.provider_meta)
    match provider:
        case Provider.GEMINI:
            inner = item.get("functionResponse") or item.get("function_response") or {}
            response = inner.get("response")
            key = "error" if isinstance(response, dict) and set(response) == {"error"} else "output"
            sole = response[key] if isinstance(response, dict) and set(response) == {key} else response
            return replace(base, content=_said(sole), is_error=key == "error")
        case Provider.GEMINI_INTERACTIONS:
            return replace(base, content=_said(item.get("result")), is_error=bool(item.get("is_error")))
        case Provider.OPENAI_RESPONSES:
            return replace(base, content=_said(item.get("output")), is_error=item.get("status") == "failed")
        case _:
            return replace(base, content=_said(item.get("content")), is_error=bool(item.get("is_error")))


def _said(value: Any) -> tuple[Content, ...]:
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(part, dict) and ("type" in part or "text" in part) for part in value):
        return tuple(one for part in value for one in _content(Provider.ANTHROPIC, part))
    return (Text(value),) if isinstance(value, str) else (Json(value),)
