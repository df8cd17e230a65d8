"""OpenAI Chat Completions and what speaks like it, CH1 to CH5. Pure."""

from collections.abc import Iterator
from types import MappingProxyType

from toolrunner.history.atoms import Kind, Side
from toolrunner.history.rules.view import Rule, View, Violation, all_of, blank, called, orphaned, repeated, unanswered
from toolrunner.wire.reading import loaded


def _valid_arguments(view: View) -> Iterator[Violation]:
    for atom in view.atoms:
        function = atom.item.get("function") if atom.kind is Kind.CALL else None
        if not isinstance(function, dict):
            continue
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            yield view.at("CH4", atom, f"the arguments of {called(atom)} are no text")
        elif not isinstance(loaded(arguments), dict):
            yield view.at("CH4", atom, f"the arguments of {called(atom)} are no JSON object")


def _thought_in_the_loop(view: View) -> Iterator[Violation]:
    """Within the tool loop that the next request goes on with, either every step brings its thought or none does."""
    steps = list[tuple[int, bool]]()
    for group in view.groups:
        if group[0].side is Side.USER and group[0].kind is not Kind.RESULT:
            steps = []
        elif group[0].side is Side.MODEL and any(atom.kind is Kind.CALL for atom in group):
            steps.append((group[0].unit, bool(group[0].item.get("reasoning_content"))))
    if any(thought for _, thought in steps):
        for unit, thought in steps:
            if not thought:
                yield view.at_unit("CH5", unit, "its calls come without the reasoning_content that other steps of this loop have")


CHAT: MappingProxyType[str, Rule] = MappingProxyType(
    {
        "CH1": all_of(unanswered("CH1"), repeated("CH1")),
        "CH2": orphaned("CH2"),
        "CH3": blank("CH3"),
        "CH4": _valid_arguments,
        "CH5": _thought_in_the_loop,
    }
)
