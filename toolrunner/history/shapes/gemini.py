"""Gemini generateContent: `contents` of role user and model with a list of parts. Pure.

Reads both spellings of a field, `functionCall` and `function_call`; writes that of REST.
"""

from collections.abc import Mapping, Sequence
from typing import Any, final

from toolrunner.facts import Content
from toolrunner.history.atoms import Atom, Kind, Side, is_blank
from toolrunner.wire import Item, MalformedItem, Provider, WireCall, call_from_item
from toolrunner.wire.gemini import media_part
from toolrunner.wire.media import rendered

_SIDES = {"user": Side.USER, "function": Side.USER, "model": Side.MODEL, "None": Side.USER}
"""A content without a role is the user's."""


@final
class GeminiConversation:
    """See `ConversationShape`."""

    provider = Provider.GEMINI
    field = "contents"
    inner = "parts"
    adjacent = True
    merges = True
    unique_ids = False

    def atoms(self, message: Mapping[str, Any], unit: int) -> list[Atom]:
        side = _SIDES.get(str(message.get("role")))
        parts = message.get("parts")
        if side is None:
            raise self._wrong(unit, f"its role is {message.get('role')!r}; expected user or model")
        if parts is None:
            parts = []
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            raise self._wrong(unit, "its parts are no list of parts")
        return [_atom(side, part, unit, index) for index, part in enumerate(parts)] or [Atom(side, Kind.BLANK, {}, unit)]

    def message(self, atoms: Sequence[Atom]) -> Item:
        return {"role": "model" if atoms[0].side is Side.MODEL else "user", "parts": [atom.item for atom in atoms]}

    def user(self, content: Sequence[Content]) -> Item:
        parts = rendered(content, media_part)
        return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}

    def wire_call(self, atom: Atom) -> WireCall:
        return call_from_item(self.provider, atom.item)

    def _wrong(self, unit: int, problem: str) -> MalformedItem:
        return MalformedItem(self.provider, f"{self.field}[{unit}]", problem)


def _atom(side: Side, part: Item, unit: int, index: int) -> Atom:
    signed = bool(part.get("thoughtSignature") or part.get("thought_signature"))
    if (call := _field(part, "functionCall", "function_call")) is not None:
        return Atom(side, Kind.CALL, part, unit, index, _id(call), str(call.get("name") or ""), signed)
    if (answer := _field(part, "functionResponse", "function_response")) is not None:
        return Atom(side, Kind.RESULT, part, unit, index, _id(answer), str(answer.get("name") or ""))
    if part.get("thought"):
        return Atom(side, Kind.THINKING, part, unit, index, signed=signed)
    text = part.get("text")
    # A signature may come in a part of its own whose text is empty; it is content.
    empty = not part or (set(part) <= {"text"} and (text is None or is_blank(text)))
    if empty:
        return Atom(side, Kind.BLANK, part, unit, index)
    return Atom(side, Kind.TEXT if isinstance(text, str) else Kind.OTHER, part, unit, index, signed=signed)


def _field(part: Item, camel: str, snake: str) -> Item | None:
    value = part.get(camel) if part.get(camel) is not None else part.get(snake)
    return value if isinstance(value, dict) else None


def _id(inner: Item) -> str | None:
    value = inner.get("id")
    return value if isinstance(value, str) and value else None
