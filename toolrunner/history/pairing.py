"""Which result answers which call, and what is left over. Pure; no state.

Two ways: where answers must directly follow (`adjacent`), a result counts only in the place where its provider looks for it; else
it may stand anywhere behind its call. Ids pair where there are any; Gemini's calls without an id pair by name and order (GM3).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

from toolrunner.history.atoms import Atom, ConversationShape, Kind, Side

__all__ = ["Pairing", "answers_to", "paired", "window_after"]


@final
@dataclass(slots=True)
class Pairing:
    """Filled by `paired` alone."""

    answers: dict[Atom, Atom] = field(default_factory=dict)
    """Call -> the result that answers it."""
    missing: list[Atom] = field(default_factory=list)
    """Calls without a result."""
    orphans: list[Atom] = field(default_factory=list)
    """Results that answer no call that they could."""
    repeated: list[Atom] = field(default_factory=list)
    """Second results of a call."""
    reused: list[Atom] = field(default_factory=list)
    """Calls with the id of an earlier one."""


def answers_to(call: Atom, result: Atom) -> bool:
    """Whether a result names this call: by id where both have one, else by name."""
    if call.call_id is not None and result.call_id is not None:
        return call.call_id == result.call_id
    return call.name == result.name


def window_after(shape: ConversationShape, groups: Sequence[list[Atom]], number: int) -> list[Atom]:
    """The results that stand where the provider looks for the answers to message `number`."""
    found = list[Atom]()
    for group in groups[number + 1 :]:
        if group[0].side is not Side.USER or not any(atom.kind is Kind.RESULT for atom in group):
            break
        found += [atom for atom in group if atom.kind is Kind.RESULT]
        if shape.merges:  # one message holds all answers there; elsewhere each is a message of its own
            break
    return found


def paired(shape: ConversationShape, groups: Sequence[list[Atom]]) -> Pairing:
    """Pair all calls and results of a conversation."""
    pairing = Pairing()
    if shape.adjacent:
        _pair_by_place(shape, groups, pairing)
    else:
        _pair_in_order([atom for group in groups for atom in group], pairing)
    _find_reused(shape, groups, pairing)
    return pairing


def _pair_by_place(shape: ConversationShape, groups: Sequence[list[Atom]], pairing: Pairing) -> None:
    looked_at = set[Atom]()
    for number, group in enumerate(groups):
        calls = [atom for atom in group if atom.kind is Kind.CALL and atom.side is Side.MODEL]
        if not calls:
            continue
        window = window_after(shape, groups, number)
        looked_at.update(window)
        pairing.missing += _pair_window(calls, window, pairing)
    for group in groups:
        pairing.orphans += [atom for atom in group if atom.kind is Kind.RESULT and atom not in looked_at]


def _pair_window(calls: Sequence[Atom], window: Sequence[Atom], pairing: Pairing) -> list[Atom]:
    waiting = list(calls)
    for result in window:
        call = next((one for one in waiting if answers_to(one, result)), None)
        if call is not None:
            waiting.remove(call)
            pairing.answers[call] = result
        elif any(answers_to(one, result) for one in calls):
            pairing.repeated.append(result)
        else:
            pairing.orphans.append(result)
    return waiting


def _pair_in_order(atoms: Sequence[Atom], pairing: Pairing) -> None:
    made = list[Atom]()
    for atom in atoms:
        if atom.kind is Kind.CALL:
            made.append(atom)
        elif atom.kind is Kind.RESULT:
            named = [call for call in made if answers_to(call, atom)]
            waiting = [call for call in named if call not in pairing.answers]
            if waiting:
                pairing.answers[waiting[0]] = atom
            else:
                (pairing.repeated if named else pairing.orphans).append(atom)
    pairing.missing += [call for call in made if call not in pairing.answers]


def _find_reused(shape: ConversationShape, groups: Sequence[list[Atom]], pairing: Pairing) -> None:
    seen = set[str]()
    for group in groups:
        if not shape.unique_ids:
            seen.clear()
        for atom in group:
            if atom.kind is Kind.CALL and atom.call_id:
                if atom.call_id in seen:
                    pairing.reused.append(atom)
                seen.add(atom.call_id)
