"""OpenAI Responses with the whole history in the request, RS1 to RS7. Pure."""

from collections.abc import Iterator
from itertools import pairwise
from types import MappingProxyType

from toolrunner.history.atoms import Atom, Kind, Side
from toolrunner.history.rules.view import (
    Rule,
    View,
    Violation,
    all_of,
    called,
    has_text,
    orphaned,
    repeated,
    unanswered,
    unsigned_thinking,
)

_UNFINISHED = frozenset({"incomplete", "in_progress", "failed", "cancelled"})


def _produces(view: View) -> Iterator[Violation]:
    """A thought is followed by what it led to: another thought, a text, a call."""
    for atom, after in [*pairwise(view.atoms), *((atom, None) for atom in view.atoms[-1:])]:
        if atom.kind is Kind.THINKING and (after is None or after.side is not Side.MODEL):
            yield view.at("RS3", atom, "the item that this thought led to is missing")


def _ids_go_together(view: View) -> Iterator[Violation]:
    for atom, after in pairwise(view.atoms):
        follows = atom.kind is Kind.THINKING and after.side is Side.MODEL and after.kind is not Kind.THINKING
        if follows and has_text(atom.item, "id") != has_text(after.item, "id"):
            without = after if has_text(atom.item, "id") else atom
            yield view.at("RS4", without, "a thought and what it led to keep their ids together or lose them together")


def _finished(view: View) -> Iterator[Violation]:
    for atom in view.atoms:
        # A shell call that is to be run says `in_progress`; it is a whole one all the same.
        shell = str(atom.item.get("type")) in ("shell_call", "local_shell_call", "apply_patch_call")
        if atom.kind is Kind.CALL and not shell and atom.item.get("status") in _UNFINISHED:
            yield view.at("RS6", atom, f"the call {called(atom)} was never finished, so it does not exist for the server")


def _named(view: View) -> Iterator[Violation]:
    for atom in view.atoms:
        if _is_nameless(atom):
            yield view.at("RS7", atom, f"the call {atom.call_id} names no function")


def _is_nameless(atom: Atom) -> bool:
    return atom.kind is Kind.CALL and not atom.name.strip()


RESPONSES: MappingProxyType[str, Rule] = MappingProxyType(
    {
        "RS1": all_of(unanswered("RS1"), repeated("RS1")),
        "RS2": orphaned("RS2"),
        "RS3": _produces,
        "RS4": _ids_go_together,
        "RS5": unsigned_thinking("RS5", "its encrypted content, which the server has not kept"),
        "RS6": _finished,
        "RS7": _named,
    }
)
