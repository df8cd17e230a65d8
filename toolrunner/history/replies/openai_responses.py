"""OpenAI Responses: items in order; a thought only with what it led to, and ids only with their thought (RS3, RS4, RS5). Pure."""

from collections.abc import Sequence
from dataclasses import replace

from toolrunner.history.entries import Replied
from toolrunner.history.replies.common import is_own, sendable, wire_call
from toolrunner.records import Block, CallBlock, ReasoningBlock, TextBlock, UnknownBlock
from toolrunner.wire import Item, Provider, call_item
from toolrunner.wire.reading import plain


def messages(reply: Replied, model: str | None) -> list[Item]:
    own = is_own(reply, Provider.OPENAI_RESPONSES, model)
    sent = {number for number, _ in sendable(reply, Provider.OPENAI_RESPONSES)}
    items, sealed = list[Item](), own
    for number, block in enumerate(reply.blocks):
        if isinstance(block, ReasoningBlock):
            # Everything behind a thought that is left out loses its id: the server would ask for the thought.
            sealed = own and _keeps_thought(reply, number)
            items += [_thought(block)] if sealed else []
        elif number in sent:
            items += _items(reply, block, model, sealed=sealed)
    return items


def _keeps_thought(reply: Replied, number: int) -> bool:
    """Whether the thought at this place is sealed, and what it led to is there, whole."""
    behind: Sequence[Block] = reply.blocks[number:]
    for block in behind:
        match block:
            case ReasoningBlock(closed=True, encrypted=str(encrypted)) if encrypted:
                continue
            case ReasoningBlock():
                return False
            case TextBlock(closed=True, text=text):
                return bool(text.strip()) and _ids_match(reply, number, block.item_id)
            case CallBlock(closed=True, name=name):
                item_id = block.provider_meta.get("id")
                return bool(name.strip()) and _ids_match(reply, number, item_id if isinstance(item_id, str) else None)
            case UnknownBlock(closed=True):
                return True
            case _:
                return False
    return False


def _ids_match(reply: Replied, number: int, item_id: str | None) -> bool:
    thought = reply.blocks[number]
    return not isinstance(thought, ReasoningBlock) or bool(thought.item_id) == bool(item_id)


def _thought(block: ReasoningBlock) -> Item:
    summary = [{"type": "summary_text", "text": block.text}] if block.text else []
    base: Item = {"type": "reasoning", "summary": summary, "encrypted_content": block.encrypted}
    named = {**base, "id": block.item_id} if block.item_id else base
    return {**named, **{key: plain(value) for key, value in block.provider_meta.items()}}


def _items(reply: Replied, block: Block, model: str | None, *, sealed: bool) -> list[Item]:
    match block:
        case TextBlock(text=text) if text.strip():
            message: Item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
            named = sealed and block.closed and block.item_id is not None
            return [{**message, "id": block.item_id, "status": "completed"} if named else message]
        case CallBlock():
            call = wire_call(reply, block, Provider.OPENAI_RESPONSES, model)
            if not sealed:
                call = replace(call, provider_meta={key: value for key, value in call.provider_meta.items() if key != "id"})
            return [call_item(Provider.OPENAI_RESPONSES, call)]
        case UnknownBlock(item=item):
            return [plain(item)]
        case _:
            return []
