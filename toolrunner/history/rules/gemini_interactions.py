"""Gemini Interactions with the whole history in the request, GI1 to GI8. Pure.

Sources: "Interactions API" reference (function_call, function_result, thought, user_input and model_output steps), "Gemini
thinking" (signatures), and what the live endpoint refused: googleapis/js-genai#1735, robocurve/inspect-robots#380.
"""

from collections.abc import Iterator
from types import MappingProxyType

from toolrunner.history.atoms import Kind
from toolrunner.history.rules.view import (
    Rule,
    View,
    Violation,
    blank,
    called,
    ends_on_user,
    has_text,
    orphaned,
    repeated,
    unanswered,
    unsigned_thinking,
)


def _results_are_whole(view: View) -> Iterator[Violation]:
    for atom in view.atoms:
        if atom.kind is Kind.RESULT:
            lacks = [key for key in ("call_id", "name") if not has_text(atom.item, key)]
            lacks += [] if "result" in atom.item else ["result"]
            if lacks:
                yield view.at("GI5", atom, f"the result {called(atom)} lacks {' and '.join(lacks)}")


def _calls_are_whole(view: View) -> Iterator[Violation]:
    for atom in view.atoms:
        if atom.kind is Kind.CALL:
            lacks = [key for key in ("id", "name") if not has_text(atom.item, key)]
            lacks += [] if isinstance(atom.item.get("arguments"), dict) else ["arguments as an object"]
            if lacks:
                yield view.at("GI6", atom, f"the call {called(atom)} lacks {' and '.join(lacks)}")


def _typed(view: View) -> Iterator[Violation]:
    for atom in view.atoms:
        if not has_text(atom.item, "type"):
            yield view.at("GI7", atom, "it has no type; a step is told by its type, not by a role")
        elif atom.kind is Kind.TEXT and not isinstance(atom.item.get("content"), str | list):
            yield view.at("GI7", atom, "its content is neither text nor a list of parts")


def _ends_with_input(view: View) -> Iterator[Violation]:
    yield from ends_on_user("GI8")(view)
    yield from blank("GI8")(view)


INTERACTIONS: MappingProxyType[str, Rule] = MappingProxyType(
    {
        "GI1": unanswered("GI1"),
        "GI2": orphaned("GI2"),
        "GI3": repeated("GI3"),
        "GI4": unsigned_thinking("GI4", "its signature"),
        "GI5": _results_are_whole,
        "GI6": _calls_are_whole,
        "GI7": _typed,
        "GI8": _ends_with_input,
    }
)
