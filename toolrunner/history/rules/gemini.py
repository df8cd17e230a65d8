"""Gemini generateContent, GM1 to GM6. Pure.

(GM7, a signature belongs to the model that made it, is kept by the projection: a list does not say which model wrote it.)
"""

from collections.abc import Iterator
from types import MappingProxyType

from toolrunner.history.atoms import Atom, Kind, Side
from toolrunner.history.rules.view import (
    Rule,
    View,
    Violation,
    all_of,
    begins_with_user,
    blank,
    called,
    ends_on_user,
    in_call_order,
    orphaned,
    repeated,
    results_first,
    takes_turns,
    unanswered,
)


def _args_are_objects(view: View) -> Iterator[Violation]:
    for atom in view.atoms:
        if atom.kind is Kind.CALL:
            call = atom.item.get("functionCall") or atom.item.get("function_call") or {}
            if not isinstance(call.get("args", {}), dict | None):
                yield view.at("GM5", atom, f"the args of {called(atom)} are no object")


def current_turn(groups: list[list[Atom]]) -> list[list[Atom]]:
    """From the latest content of the user that says something of its own; answers to calls do not begin a turn."""
    begins = [
        number
        for number, group in enumerate(groups)
        if group[0].side is Side.USER and any(atom.kind is not Kind.RESULT for atom in group)
    ]
    return groups[begins[-1] :] if begins else groups


def _first_call_is_signed(view: View) -> Iterator[Violation]:
    """Only where the model signs at all: models before Gemini 3 do not, and a list does not say which model wrote it."""
    if not any(atom.signed for atom in view.atoms if atom.kind is Kind.CALL):
        return
    for group in current_turn(list(view.groups)):
        first = next((atom for atom in group if atom.kind is Kind.CALL), None)
        if first is not None and not first.signed:
            yield view.at("GM4", first, f"the first call of this step, {called(first)}, has lost its thoughtSignature")


GEMINI: MappingProxyType[str, Rule] = MappingProxyType(
    {
        "GM1": all_of(unanswered("GM1"), repeated("GM1")),
        "GM2": all_of(orphaned("GM2"), results_first("GM2")),
        "GM3": in_call_order("GM3"),
        "GM4": _first_call_is_signed,
        "GM5": _args_are_objects,
        "GM6": all_of(begins_with_user("GM6"), blank("GM6"), takes_turns("GM6"), ends_on_user("GM6")),
    }
)
