"""OpenAI Chat Completions: `messages`; an assistant's calls hang on its message, each result is a message of role tool. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, final

from toolrunner.facts import Content
from toolrunner.history.atoms import Atom, Kind, Side, is_blank
from toolrunner.wire import Item, MalformedItem, Provider, WireCall, call_from_item
from toolrunner.wire.media import rendered
from toolrunner.wire.openai_chat import media_part

_SIDES = {"user": Side.USER, "system": Side.SYSTEM, "developer": Side.SYSTEM, "tool": Side.USER, "function": Side.USER}
_SAYS = ("content", "refusal", "audio", "function_call")
"""Fields of an assistant's message that are something even without calls."""


@final
class ChatConversation:
    """See `ConversationShape`."""

    provider = Provider.OPENAI_CHAT
    field = "messages"
    inner = "content"
    adjacent = True
    merges = False
    unique_ids = False

    def atoms(self, message: Mapping[str, Any], unit: int) -> list[Atom]:
        role, item = message.get("role"), dict(message)
        if role == "assistant":
            return self._assistant(item, unit)
        if role == "tool":
            call_id = item.get("tool_call_id")
            return [Atom(Side.USER, Kind.RESULT, item, unit, call_id=call_id if isinstance(call_id, str) else "")]
        side = _SIDES.get(str(role))
        if side is None:
            raise MalformedItem(self.provider, f"{self.field}[{unit}]", f"its role is {role!r}; expected one of the API's")
        return [Atom(side, Kind.TEXT if isinstance(item.get("content"), str) else Kind.OTHER, item, unit)]

    def _assistant(self, item: Item, unit: int) -> list[Atom]:
        calls = item.get("tool_calls") or []
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            raise MalformedItem(self.provider, f"{self.field}[{unit}].tool_calls", "is no list of calls")
        head = {key: value for key, value in item.items() if key != "tool_calls"}
        says = any(head.get(key) and not is_blank(head[key]) for key in _SAYS)
        kind = Kind.TEXT if says else Kind.HEAD if calls else Kind.BLANK
        return [
            Atom(Side.MODEL, kind, head, unit),
            *(_call(call, unit, index) for index, call in enumerate(calls)),
        ]

    def message(self, atoms: Sequence[Atom]) -> Item:
        head = [atom for atom in atoms if atom.kind is not Kind.CALL]
        calls = [atom.item for atom in atoms if atom.kind is Kind.CALL]
        base = head[0].item if head else {"role": "assistant", "content": None}
        return {**base, "tool_calls": calls} if calls else dict(base)

    def user(self, content: Sequence[Content]) -> Item:
        parts = rendered(content, media_part)
        texts = [part for part in parts if isinstance(part, str)]
        if len(texts) == len(parts):
            return {"role": "user", "content": "\n".join(texts)}
        return {"role": "user", "content": [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]}

    def wire_call(self, atom: Atom) -> WireCall:
        return call_from_item(self.provider, atom.item)


def _call(call: Item, unit: int, index: int) -> Atom:
    own = call.get("custom") if call.get("type") == "custom" else call.get("function")
    name = own.get("name") if isinstance(own, dict) else ""
    call_id = call.get("id")
    return Atom(Side.MODEL, Kind.CALL, call, unit, index, call_id if isinstance(call_id, str) else "", str(name or ""))
