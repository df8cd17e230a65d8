"""An interrupted turn on a plain list of messages: close it, mark it, fold a crash draft into it. Pure; no state.

Each function extends the list it is given and touches no earlier item, so what a provider has cached stays byte for byte what it
was. The marker is short and factual, and claims nothing about what the model did: the history itself says that.
"""

from collections.abc import Sequence
from dataclasses import replace

from toolrunner.facts import Content, Text
from toolrunner.history.atoms import Atom, ConversationShape, Kind, Side, grouped, joined, take_apart
from toolrunner.history.drafts import Draft
from toolrunner.history.pairing import paired, window_after
from toolrunner.history.repairs.work import unknown_result
from toolrunner.history.shapes import shape_of
from toolrunner.markers import (
    InterruptReason,
    interruption_label,
    is_interruption_marker,
    marker_text,
    tool_in_flight_note,
    tool_in_flight_note_label,
)
from toolrunner.markers import is_tool_in_flight_note as is_note_text
from toolrunner.results import ToolResult
from toolrunner.wire import Item, WireCall, WireResult, result_messages

__all__ = [
    "append_marker",
    "close_interrupted",
    "interruption_label",
    "is_interruption_marker",
    "is_tool_in_flight_note",
    "migrate_legacy_abort_context",
    "recover_crashed_turn",
    "tool_in_flight_note",
    "tool_in_flight_note_label",
    "tool_in_flight_note_message",
]


def append_marker(messages: list[Item], reason: InterruptReason, *, provider: str) -> bool:
    """Append the marker for `reason`, unless the history ends with a marker already: then the first reason stands.

    Returns whether a message was appended. It is a message of its own; joining it with a neighbour is the projection's.
    """
    shape = shape_of(provider)
    if is_interruption_marker(_last_text(shape, messages)):
        return False
    messages.append(_said(shape, marker_text(reason)))
    return True


def close_interrupted(
    messages: list[Item],
    provider: str,
    *,
    partial: str | None = None,
    results: Sequence[ToolResult] = (),
    reason: InterruptReason = InterruptReason.USER,
) -> list[Item]:
    """Close a turn that was stopped: what the user read is kept, every open call gets its one answer, and a marker follows.

    Args:
        messages: the history; it is extended in place.
        provider: a `Provider` or its name.
        partial: the text of a response that was cut off, as far as the user has seen it. A blank one is none.
        results: what is known of the calls of the last response. A call without one is answered with a text that claims
            nothing, neither that it ran nor that it did not.
        reason: why the turn was stopped.

    Returns:
        The messages that were added, in order.

    Raises:
        ConfigError: the provider is unknown.
        MalformedItem: a message is not of the form its API promises.
    """
    shape = shape_of(provider)
    before = len(messages)
    open_calls = _open_calls(shape, messages)
    if open_calls:
        messages += _answers(shape, open_calls, results)
    if partial is not None and partial.strip():
        messages.append(_reply(shape, partial))
    append_marker(messages, reason, provider=provider)
    # Of what is added here, neighbours of one side are one message; the one before is not ours to change.
    messages[before:] = joined(shape, take_apart(shape, messages[before:]))
    return messages[before:]


def _open_calls(shape: ConversationShape, messages: Sequence[Item]) -> list[Atom]:
    """The calls of the last response that nothing answers. Earlier ones are beyond appending; `repair` mends them."""
    groups = grouped(shape, take_apart(shape, messages))
    missing = set(paired(shape, groups).missing)
    if shape.adjacent:
        for number in range(len(groups) - 1, -1, -1):
            if any(atom.kind is Kind.CALL for atom in groups[number]):
                behind = sum(len(group) for group in groups[number + 1 :])
                # Anything but answers behind it would come between the calls and what is appended here.
                free = behind == len(window_after(shape, groups, number))
                return [atom for atom in groups[number] if atom in missing] if free else []
        return []
    return [atom for group in groups for atom in group if atom in missing]


def _answers(shape: ConversationShape, calls: Sequence[Atom], results: Sequence[ToolResult]) -> list[Item]:
    known = list(results)
    told = list[WireResult]()
    for atom in calls:
        call = shape.wire_call(atom)
        own = next((one for one in known if _is_of(call, one)), None)
        if own is not None:
            known.remove(own)
            told.append(
                replace(own.to_wire(), call_id=call.call_id, name=call.name, kind=call.kind, provider_meta=call.provider_meta)
            )
        else:
            told.append(unknown_result(call))
    return result_messages(shape.provider, told)


def _is_of(call: WireCall, result: ToolResult) -> bool:
    if call.call_id is not None and result.call_id is not None:
        return call.call_id == result.call_id
    return call.name == result.name


def _reply(shape: ConversationShape, text: str) -> Item:
    """The message of a reply that was cut off: text only, without an id the provider could miss its thoughts by."""
    (atom,) = take_apart(shape, [_said(shape, text)])
    match shape.provider:
        case "anthropic":
            return {"role": "assistant", "content": [atom.item]}
        case "gemini":
            return {"role": "model", "parts": [atom.item]}
        case "openai_chat":
            return {"role": "assistant", "content": text}
        case "openai_responses":
            return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        case _:
            return {"type": "model_output", "content": [{"type": "text", "text": text}]}


def _said(shape: ConversationShape, text: str) -> Item:
    content: tuple[Content, ...] = (Text(text),)
    return shape.user(content)


def _last_text(shape: ConversationShape, messages: Sequence[Item]) -> str | None:
    """The text that the history ends with, if it is the user's."""
    if not messages:
        return None
    atom = shape.atoms(messages[-1], 0)[-1]
    return text_of(atom) if atom.side is Side.USER and atom.kind is Kind.TEXT else None


def text_of(atom: Atom) -> str | None:
    """The text of an atom that is nothing but one text."""
    for key in ("text", "content"):
        value = atom.item.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
            text = value[0].get("text")
            return text if isinstance(text, str) else None
    return None


def is_tool_in_flight_note(message: object, *, provider: str | None = None) -> bool:
    """Whether a text, or with `provider` a whole message of the user, is exactly a generated note."""
    if provider is None or isinstance(message, str):
        return is_note_text(message)
    shape = shape_of(provider)
    atoms = take_apart(shape, [message])
    return len(atoms) == 1 and atoms[0].side is Side.USER and is_note_text(text_of(atoms[0]))


def tool_in_flight_note_message(reason: InterruptReason, tools: Sequence[str], *, provider: str) -> Item:
    """The note as a message of the history, with no mark but its exact text."""
    return _said(shape_of(provider), tool_in_flight_note(reason, tools))


def migrate_legacy_abort_context(messages: list[Item], abort_context: str | None, *, provider: str) -> bool:
    """Drop the recap that older versions put before the next user message; the marker takes its place where there is a history.

    Its text is discarded: a user's turn that retells the model's own words and calls reads as an injected prompt. Returns whether
    there was one; the caller forgets it then, so a second time does nothing.
    """
    if abort_context is None:
        return False
    if messages:
        append_marker(messages, InterruptReason.UNKNOWN, provider=provider)
    return True


def recover_crashed_turn(messages: list[Item], draft: Draft, *, provider: str) -> bool:
    """Fold the draft of a turn whose process died into the history it lies beside. Only the holder of the session's lock may.

    Nothing happens to an empty history (the prompt was never saved), or to one that ends with a marker or the model's words (the
    turn had come to its end, only the draft's removal was lost). A stale draft gives the marker and no text. Returns whether the
    history changed; a second time does nothing.
    """
    shape = shape_of(provider)
    if not messages or is_interruption_marker(_last_text(shape, messages)):
        return False
    if shape.atoms(messages[-1], 0)[-1].side is Side.MODEL and not _open_calls(shape, messages):
        return False
    partial = draft.text if draft.base == len(messages) else None
    close_interrupted(messages, provider, partial=partial, reason=InterruptReason.CRASH)
    return True
