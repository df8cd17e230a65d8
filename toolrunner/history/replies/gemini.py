"""Gemini: parts in order, each with its own signature where it stood; thoughts themselves stay out (GM4, GM6, GM7). Pure."""

from toolrunner.history.entries import Replied
from toolrunner.history.repairs.content import SKIP_SIGNATURE
from toolrunner.history.replies.common import is_own, sendable, wire_call
from toolrunner.records import Block, CallBlock, TextBlock, UnknownBlock
from toolrunner.wire import Item, Provider, call_item
from toolrunner.wire.reading import plain

_UNSIGNED_MODELS = ("gemini-1", "gemini-2")
"""Models that ask for no signature. Of any other a call that has lost its own carries the constant that says so."""


def messages(reply: Replied, model: str | None) -> list[Item]:
    own = is_own(reply, Provider.GEMINI, model)
    parts = [part for _, block in sendable(reply, Provider.GEMINI) if (part := _part(reply, block, model, own=own))]
    first = next((number for number, part in enumerate(parts) if "functionCall" in part), None)
    asked = model or (reply.model if own else "")
    if first is not None and not parts[first].get("thoughtSignature") and not asked.startswith(_UNSIGNED_MODELS):
        parts[first] = {**parts[first], "thoughtSignature": SKIP_SIGNATURE}
    return [{"role": "model", "parts": parts}] if parts else []


def _part(reply: Replied, block: Block, model: str | None, *, own: bool) -> Item | None:
    match block:
        case TextBlock(text=text, signature=signature):
            signed = {"thoughtSignature": signature} if own and signature and block.closed else {}
            return {"text": text, **signed} if text.strip() or signed else None
        case CallBlock():
            return call_item(Provider.GEMINI, wire_call(reply, block, Provider.GEMINI, model))
        case UnknownBlock(item=item):
            return plain(item)  # type: ignore[no-any-return]
        case _:
            return None
