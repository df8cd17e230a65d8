"""Stands in for the SDK of the same name in the README's loop example: a scripted model, no network.

It checks what it is sent as the service would: every tool_use is answered by one tool_result, in the next message.
"""

from types import SimpleNamespace
from typing import Any


class _Messages:
    def __init__(self) -> None:
        self._requests = 0

    def create(
        self, *, model: str, max_tokens: int, tools: list[dict[str, Any]], messages: list[dict[str, Any]]
    ) -> SimpleNamespace:
        assert model
        assert max_tokens
        assert [tool["name"] for tool in tools] == ["weather"]
        self._requests += 1
        if self._requests == 1:
            use = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}
            return _reply("tool_use", use)
        answer = messages[-1]["content"][0]
        assert (answer["type"], answer["tool_use_id"], answer.get("is_error", False)) == ("tool_result", "toolu_1", False)
        return _reply("end_turn", {"type": "text", "text": f"The tool says: {_text(answer)}"})


def _text(answer: dict[str, Any]) -> str:
    content = answer["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _reply(stop_reason: str, *content: dict[str, Any]) -> SimpleNamespace:
    blocks = [SimpleNamespace(**block, model_dump=lambda block=block, **_: block) for block in content]
    dumped = {"type": "message", "role": "assistant", "stop_reason": stop_reason, "content": list(content)}
    return SimpleNamespace(content=blocks, stop_reason=stop_reason, model_dump=lambda **_: dumped)


class Anthropic:
    """The client."""

    def __init__(self) -> None:
        self.messages = _Messages()
