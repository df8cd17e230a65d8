"""OpenAI Responses, nothing held by the server: `input` items, each a message, a thought, a call or its output. Pure.

Chained requests (`previous_response_id`) are not written: what the server holds of a stopped response cannot be known (RS6).
"""

from collections.abc import Mapping, Sequence
from typing import Any, final

from toolrunner.facts import Content
from toolrunner.history.atoms import Atom, Kind, Side, is_blank
from toolrunner.wire import Item, MalformedItem, Provider, WireCall, call_from_item
from toolrunner.wire.media import rendered
from toolrunner.wire.openai_responses import media_part

_SIDES = {"user": Side.USER, "assistant": Side.MODEL, "system": Side.SYSTEM, "developer": Side.SYSTEM}
CALLS = frozenset({"function_call", "custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call"})
_CUT = frozenset({"incomplete", "failed", "cancelled"})
_OUTPUTS = frozenset(f"{name}_output" for name in CALLS)


@final
class ResponsesConversation:
    """See `ConversationShape`."""

    provider = Provider.OPENAI_RESPONSES
    field = "input"
    inner = ""
    adjacent = False
    merges = False
    unique_ids = True

    def atoms(self, message: Mapping[str, Any], unit: int) -> list[Atom]:
        item = dict(message)
        kind = str(item.get("type") or "message")
        if kind in CALLS:
            named = str(item.get("name") or "") if "name" in item or kind in ("function_call", "custom_tool_call") else kind
            return [Atom(Side.MODEL, Kind.CALL, item, unit, call_id=_id(item, "call_id"), name=named)]
        if kind in _OUTPUTS:
            # The output of a local shell call names it in `id`.
            key = "id" if kind == "local_shell_call_output" else "call_id"
            return [Atom(Side.USER, Kind.RESULT, item, unit, call_id=_id(item, key))]
        if kind == "reasoning":
            return [Atom(Side.MODEL, Kind.THINKING, item, unit, signed=bool(item.get("encrypted_content")))]
        if kind != "message":
            return [Atom(Side.MODEL, Kind.OTHER, item, unit)]
        side = _SIDES.get(str(item.get("role")))
        if side is None:
            raise MalformedItem(
                self.provider, f"{self.field}[{unit}]", f"its role is {item.get('role')!r}; expected one of the API's"
            )
        return [Atom(side, Kind.BLANK if _says_nothing(item.get("content")) else Kind.TEXT, item, unit)]

    def message(self, atoms: Sequence[Atom]) -> Item:
        return dict(atoms[0].item)

    def user(self, content: Sequence[Content]) -> Item:
        parts = rendered(content, media_part)
        blocks = [{"type": "input_text", "text": part} if isinstance(part, str) else part for part in parts]
        return {"type": "message", "role": "user", "content": blocks}

    def wire_call(self, atom: Atom) -> WireCall:
        item = atom.item
        if item.get("status") in _CUT:  # it would not be read, as one that must not be run; here it only is to be answered
            item = {key: value for key, value in item.items() if key != "status"}
        return call_from_item(self.provider, item)


def _id(item: Item, key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""


def _says_nothing(content: object) -> bool:
    if isinstance(content, list):
        return all(isinstance(part, dict) and is_blank(part.get("text")) for part in content)
    return is_blank(content)
