"""Gemini Interactions: steps in order; a thought only with its signature, and only before something (GI4). Pure."""

from toolrunner.history.entries import Replied
from toolrunner.history.replies.common import is_own, sendable, wire_call
from toolrunner.records import Block, CallBlock, ReasoningBlock, TextBlock, UnknownBlock
from toolrunner.wire import Item, Provider, call_item
from toolrunner.wire.reading import plain


def messages(reply: Replied, model: str | None) -> list[Item]:
    own = is_own(reply, Provider.GEMINI_INTERACTIONS, model)
    steps = [step for _, block in sendable(reply, Provider.GEMINI_INTERACTIONS) if (step := _step(reply, block, model, own=own))]
    while steps and steps[-1]["type"] == "thought":
        steps.pop()
    return steps


def _step(reply: Replied, block: Block, model: str | None, *, own: bool) -> Item | None:
    match block:
        case TextBlock(text=text) if text.strip():
            return {"type": "model_output", "content": [{"type": "text", "text": text}]}
        case ReasoningBlock(signature=str(signature)) if own and signature:
            summary = {"summary": [{"type": "text", "text": block.text}]} if block.text else {}
            return {"type": "thought", "signature": signature, **summary}
        case CallBlock():
            return call_item(Provider.GEMINI_INTERACTIONS, wire_call(reply, block, Provider.GEMINI_INTERACTIONS, model))
        case UnknownBlock(item=item):
            return plain(item)  # type: ignore[no-any-return]
        case _:
            return None
