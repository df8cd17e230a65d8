"""Gemini Interactions, nothing held by the server: `input` is the list of steps. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, final

from toolrunner.facts import Content
from toolrunner.history.atoms import Atom, Kind, Side, is_blank
from toolrunner.wire import Item, Provider, WireCall, call_from_item
from toolrunner.wire.gemini_interactions import media_part
from toolrunner.wire.media import rendered


@final
class InteractionsConversation:
    """See `ConversationShape`."""

    provider = Provider.GEMINI_INTERACTIONS
    field = "input"
    inner = ""
    adjacent = False
    merges = False
    unique_ids = True

    def atoms(self, message: Mapping[str, Any], unit: int) -> list[Atom]:
        item = dict(message)
        kind = str(item.get("type"))
        if kind in ("user_input", "model_output"):
            side = Side.USER if kind == "user_input" else Side.MODEL
            return [Atom(side, Kind.BLANK if _says_nothing(item.get("content")) else Kind.TEXT, item, unit)]
        name = str(item.get("name") or "")
        if kind == "function_call":
            return [
                Atom(Side.MODEL, Kind.CALL, item, unit, call_id=_id(item, "id"), name=name, signed=bool(item.get("signature")))
            ]
        if kind == "function_result":
            return [Atom(Side.USER, Kind.RESULT, item, unit, call_id=_id(item, "call_id"), name=name)]
        if kind == "thought":
            return [Atom(Side.MODEL, Kind.THINKING, item, unit, signed=bool(item.get("signature")))]
        return [Atom(Side.MODEL, Kind.OTHER, item, unit)]

    def message(self, atoms: Sequence[Atom]) -> Item:
        return dict(atoms[0].item)

    def user(self, content: Sequence[Content]) -> Item:
        parts = rendered(content, media_part)
        return {
            "type": "user_input",
            "content": [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts],
        }

    def wire_call(self, atom: Atom) -> WireCall:
        return call_from_item(self.provider, atom.item)


def _id(item: Item, key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""


def _says_nothing(content: object) -> bool:
    if isinstance(content, list):
        return all(
            isinstance(part, dict) and part.get("type", "text") == "text" and is_blank(part.get("text", "")) for part in content
        )
    return content is None or is_blank(content)
