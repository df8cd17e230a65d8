"""Anthropic: thoughts with their whole signature, text, then calls (AN5, AN6, AN10). Pure."""

from toolrunner.history.entries import Replied
from toolrunner.history.replies.common import is_own, sendable, wire_call
from toolrunner.history.shapes.anthropic import SERVER_CALLS
from toolrunner.records import Block, CallBlock, ReasoningBlock, RedactedBlock, TextBlock, UnknownBlock
from toolrunner.wire import Item, Provider, call_item

_THOUGHTS = frozenset({"thinking", "redacted_thinking"})


def messages(reply: Replied, model: str | None) -> list[Item]:
    own = is_own(reply, Provider.ANTHROPIC, model)
    blocks = [item for _, block in sendable(reply, Provider.ANTHROPIC) if (item := _item(reply, block, model, own=own))]
    blocks = _without_server_halves(blocks)
    first = next((number for number, item in enumerate(blocks) if item["type"] == "tool_use"), len(blocks))
    # Text goes before the first call; everything else keeps its place.
    late = [item for item in blocks[first:] if item["type"] == "text"]
    ordered = [*blocks[:first], *late, *(item for item in blocks[first:] if item["type"] != "text")]
    while ordered and ordered[-1]["type"] in _THOUGHTS:
        ordered.pop()
    return [{"role": "assistant", "content": ordered}] if ordered else []


def _item(reply: Replied, block: Block, model: str | None, *, own: bool) -> Item | None:
    match block:
        case TextBlock(text=text) if text.strip():
            return {"type": "text", "text": text}
        case ReasoningBlock(signature=str(signature)) if own and signature:
            return {"type": "thinking", "thinking": block.text, "signature": signature}
        case RedactedBlock(data=data) if own and data:
            return {"type": "redacted_thinking", "data": data}
        case CallBlock():
            return call_item(Provider.ANTHROPIC, wire_call(reply, block, Provider.ANTHROPIC, model))
        case UnknownBlock(item=item):
            return dict(item)
        case _:
            return None


def _without_server_halves(blocks: list[Item]) -> list[Item]:
    """The provider's own call and its result go together, but for a turn with calls of ours: there it adds the result itself."""
    made = {item.get("id") for item in blocks if item["type"] in SERVER_CALLS}
    told = {item.get("tool_use_id") for item in blocks if str(item["type"]).endswith("_tool_result")}
    mixed = any(item["type"] == "tool_use" for item in blocks)
    return [
        item
        for item in blocks
        if not (item["type"] in SERVER_CALLS and item.get("id") not in told and not mixed)
        and not (str(item["type"]).endswith("_tool_result") and item.get("tool_use_id") not in made)
    ]
