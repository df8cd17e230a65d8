"""OpenAI Chat: one message with its text and its calls; a thought goes back only beside calls (CH3, CH5). Pure."""

from toolrunner.history.entries import Replied
from toolrunner.history.replies.common import is_own, sendable, wire_call
from toolrunner.records import CallBlock, ReasoningBlock, TextBlock
from toolrunner.wire import Item, Provider, call_item


def messages(reply: Replied, model: str | None) -> list[Item]:
    blocks = [block for _, block in sendable(reply, Provider.OPENAI_CHAT)]
    text = "\n".join(block.text for block in blocks if isinstance(block, TextBlock) and block.text.strip())
    calls = [
        call_item(Provider.OPENAI_CHAT, wire_call(reply, block, Provider.OPENAI_CHAT, model))
        for block in blocks
        if isinstance(block, CallBlock)
    ]
    if not text and not calls:
        return []
    message: Item = {"role": "assistant", "content": text or None}
    if not calls:
        return [message]
    thought = "".join(block.text for block in blocks if isinstance(block, ReasoningBlock))
    if thought and is_own(reply, Provider.OPENAI_CHAT, model):
        message["reasoning_content"] = thought
    return [{**message, "tool_calls": calls}]
