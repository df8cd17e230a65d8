"""Anthropic Messages, AN1 to AN12. Pure."""

from collections.abc import Iterator
from types import MappingProxyType

from toolrunner.history.atoms import Atom, Kind, Side
from toolrunner.history.rules.view import (
    Rule,
    View,
    Violation,
    all_of,
    blank,
    ends_on_user,
    orphaned,
    repeated,
    results_first,
    takes_turns,
    unanswered,
    unsigned_thinking,
)


def _ends_in_thinking(view: View) -> Iterator[Violation]:
    for group in view.groups:
        if group[-1].kind is Kind.THINKING:
            yield view.at("AN6", group[-1], "the model's message ends with a thought")


def _no_trailing_space(view: View) -> Iterator[Violation]:
    last = view.atoms[-1] if view.atoms else None
    text = last.item.get("text") if last is not None and last.side is Side.MODEL else None
    if last is not None and isinstance(text, str) and text != text.rstrip():
        yield view.at("AN8", last, "the model's last text ends with white space")


def _text_before_calls(view: View) -> Iterator[Violation]:
    for group in view.groups:
        called = False
        for atom in group:
            called = called or atom.kind is Kind.CALL
            if called and atom.kind is Kind.TEXT and atom.side is Side.MODEL:
                yield view.at("AN10", atom, "a text stands behind a call")


def _extends(view: View) -> Iterator[Violation]:
    """Compared block by block: what was sent must be a prefix, the last message may have grown."""
    if view.sent is None:
        return
    before = [_content(message) for message in view.sent]
    after = [_content(message) for message in view.messages]
    for unit, (role, blocks) in enumerate(before):
        same = unit < len(after) and after[unit][0] == role
        whole = blocks if unit < len(before) - 1 else after[unit][1][: len(blocks)] if same else None
        if not same or after[unit][1][: len(blocks)] != blocks or (unit < len(before) - 1 and after[unit][1] != whole):
            yield view.at_unit("AN11", unit, "it differs from what was sent, so nothing from here on is in the cache")
            return


def _content(message: object) -> tuple[object, list[object]]:
    """Role and blocks without cache marks, which move from request to request."""
    fields = message if isinstance(message, dict) else {}
    content = fields.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content if isinstance(content, list) else []
    bare = [{key: value for key, value in block.items() if key != "cache_control"} for block in blocks if isinstance(block, dict)]
    return fields.get("role"), list(bare)


def _server_pairs(view: View) -> Iterator[Violation]:
    for group in view.groups:
        calls = {atom.call_id: atom for atom in group if atom.kind is Kind.SERVER_CALL}
        answered = {atom.call_id for atom in group if atom.kind is Kind.SERVER_RESULT}
        yield from _without_call(view, group, calls)
        # With one of our calls in the same response the API adds the result behind ours.
        if not any(atom.kind is Kind.CALL for atom in group):
            for call_id, atom in calls.items():
                if call_id not in answered:
                    yield view.at("AN12", atom, f"the server's own call {call_id} has no result in its message")


def _without_call(view: View, group: list[Atom], calls: dict[str | None, Atom]) -> Iterator[Violation]:
    for atom in group:
        if atom.kind is Kind.SERVER_RESULT and atom.call_id not in calls:
            yield view.at("AN12", atom, f"the server's own result {atom.call_id} has no call in its message")


ANTHROPIC: MappingProxyType[str, Rule] = MappingProxyType(
    {
        "AN1": unanswered("AN1"),
        "AN2": orphaned("AN2"),
        "AN3": repeated("AN3"),
        "AN4": results_first("AN4"),
        "AN5": unsigned_thinking("AN5", "its whole signature"),
        "AN6": _ends_in_thinking,
        "AN7": blank("AN7"),
        "AN8": all_of(ends_on_user("AN8"), _no_trailing_space),
        "AN9": takes_turns("AN9"),
        "AN10": _text_before_calls,
        "AN11": _extends,
        "AN12": _server_pairs,
    }
)
