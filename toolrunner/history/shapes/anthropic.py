"""Anthropic Messages: `messages` of role user and assistant with a list of content blocks. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, final

from toolrunner.facts import Content
from toolrunner.history.atoms import Atom, Kind, Side, is_blank
from toolrunner.wire import Item, MalformedItem, Provider, WireCall, call_from_item
from toolrunner.wire.anthropic import media_part
from toolrunner.wire.media import rendered

_SIDES = {"user": Side.USER, "assistant": Side.MODEL, "system": Side.SYSTEM}
SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})


@final
class AnthropicConversation:
    """See `ConversationShape`."""

    provider = Provider.ANTHROPIC
    field = "messages"
    inner = "content"
    adjacent = True
    merges = True
    unique_ids = True

    def atoms(self, message: Mapping[str, Any], unit: int) -> list[Atom]:
        side = _SIDES.get(str(message.get("role")))
        content = message.get("content")
        if side is None:
            raise self._wrong(unit, f"its role is {message.get('role')!r}; expected user or assistant")
        if isinstance(content, str):
            return [Atom(side, Kind.BLANK if is_blank(content) else Kind.TEXT, {"type": "text", "text": content}, unit)]
        if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
            raise self._wrong(unit, "its content is neither text nor a list of blocks")
        return [_atom(side, block, unit, index) for index, block in enumerate(content)] or [Atom(side, Kind.BLANK, {}, unit)]

    def message(self, atoms: Sequence[Atom]) -> Item:
        role = {Side.MODEL: "assistant", Side.USER: "user", Side.SYSTEM: "system"}[atoms[0].side]
        return {"role": role, "content": [atom.item for atom in atoms]}

    def user(self, content: Sequence[Content]) -> Item:
        parts = rendered(content, media_part)
        blocks = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
        return {"role": "user", "content": blocks}

    def wire_call(self, atom: Atom) -> WireCall:
        return call_from_item(self.provider, atom.item)

    def _wrong(self, unit: int, problem: str) -> MalformedItem:
        return MalformedItem(self.provider, f"{self.field}[{unit}]", problem)


def _atom(side: Side, block: Item, unit: int, index: int) -> Atom:  # noqa: PLR0911 - one line per kind of block
    kind = str(block.get("type"))
    match kind:
        case "text":
            return Atom(side, Kind.BLANK if is_blank(block.get("text")) else Kind.TEXT, block, unit, index)
        case "thinking":
            return Atom(side, Kind.THINKING, block, unit, index, signed=bool(block.get("signature")))
        case "redacted_thinking":
            return Atom(side, Kind.THINKING, block, unit, index, signed=bool(block.get("data")))
        case "tool_use":
            return Atom(side, Kind.CALL, block, unit, index, _id(block, "id"), str(block.get("name") or ""))
        case "tool_result":
            return Atom(side, Kind.RESULT, block, unit, index, _id(block, "tool_use_id"))
        case _ if kind in SERVER_CALLS:
            return Atom(side, Kind.SERVER_CALL, block, unit, index, _id(block, "id"))
        case _ if kind.endswith("_tool_result"):
            return Atom(side, Kind.SERVER_RESULT, block, unit, index, _id(block, "tool_use_id"))
        case _:
            return Atom(side, Kind.OTHER, block, unit, index)


def _id(block: Item, key: str) -> str:
    value = block.get(key)
    return value if isinstance(value, str) else ""
