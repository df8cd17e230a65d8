"""Repairs of order: results first, texts before calls, user first and last. Pure; no state but `Work`."""

from dataclasses import replace
from itertools import pairwise

from toolrunner.facts import Text
from toolrunner.history.atoms import Atom, Kind, Side
from toolrunner.history.pairing import paired
from toolrunner.history.repairs.work import ADDED, Work, kinds
from toolrunner.history.rules.view import has_text
from toolrunner.markers import EARLIER_LEFT_OUT, InterruptReason, marker_text


def mend_order(work: Work) -> None:
    if work.minds("trailing"):
        _leave_out_trailing_thoughts(work)
    if work.minds("first"):
        _put_results_first(work)
    if work.minds("sorted"):
        _sort_results(work)
    if work.minds("order"):
        _put_texts_before_calls(work)
    if work.minds("ids"):
        _strip_lone_ids(work)


def _leave_out_trailing_thoughts(work: Work) -> None:
    gone = set[Atom]()
    atoms = work.atoms
    for number in range(len(atoms) - 1, -1, -1):
        after = atoms[number + 1] if number + 1 < len(atoms) else None
        if atoms[number].kind is Kind.THINKING and (after is None or after.side is not Side.MODEL or after in gone):
            gone.add(atoms[number])
    if gone:
        work.leave_out("trailing", lambda atom: atom in gone, "left out: nothing that this thought led to is there")


def _put_results_first(work: Work) -> None:
    atoms = list[Atom]()
    for group in work.groups:
        results = kinds(group, Kind.RESULT)
        for number, atom in enumerate(group):
            if atom.kind is Kind.RESULT and any(one.kind is not Kind.RESULT for one in group[:number]):
                work.tell("first", atom, "moved to the front of its message")
        atoms += [*results, *(atom for atom in group if atom.kind is not Kind.RESULT)]
    work.atoms = atoms


def _sort_results(work: Work) -> None:
    groups = work.groups
    answers = paired(work.shape, groups).answers
    order = {result: number for number, result in enumerate(answers[atom] for atom in work.atoms if atom in answers)}
    atoms = list[Atom]()
    for group in groups:
        results = kinds(group, Kind.RESULT)
        ordered = sorted(results, key=lambda atom: order.get(atom, len(order)))
        if ordered != results:
            work.tell("sorted", results[0], "the results were put in the order of their calls")
        atoms += [*ordered, *(atom for atom in group if atom.kind is not Kind.RESULT)]
    work.atoms = atoms


def _put_texts_before_calls(work: Work) -> None:
    atoms = list[Atom]()
    for group in work.groups:
        first = next((number for number, atom in enumerate(group) if atom.kind is Kind.CALL), len(group))
        late = [atom for atom in group[first:] if atom.kind is Kind.TEXT and atom.side is Side.MODEL]
        for atom in late:
            work.tell("order", atom, "moved before the call that it stood behind")
        atoms += [*group[:first], *late, *(atom for atom in group[first:] if atom not in late)]
    work.atoms = atoms


def _strip_lone_ids(work: Work) -> None:
    changed = dict[Atom, Atom]()
    for atom, after in pairwise(work.atoms):
        follows = atom.kind is Kind.THINKING and after.side is Side.MODEL and after.kind is not Kind.THINKING
        if follows and has_text(atom.item, "id") != has_text(after.item, "id"):
            lone = atom if has_text(atom.item, "id") else after
            work.tell("ids", lone, "its id was taken off: the item it belongs with has none")
            changed[lone] = replace(lone, item={key: value for key, value in lone.item.items() if key != "id"})
    work.atoms = [changed.get(atom, atom) for atom in work.atoms]


def join_neighbours(work: Work) -> None:
    """Two messages of one side become one when they are put together; here that is only told."""
    if not work.minds("turns"):
        return
    joined = set[int]()
    for before, atom in pairwise(work.atoms):
        if atom.unit != before.unit and atom.side is before.side is not Side.SYSTEM and atom.unit not in joined:
            joined.add(atom.unit)
            _join(work, before, atom)


def _join(work: Work, before: Atom, atom: Atom) -> None:
    if atom.unit < ADDED and before.unit < ADDED:  # what was added is told as that
        work.tell("turns", atom, f"joined with the message of the {atom.side} before it")
    work.atoms = [replace(one, unit=before.unit, index=one.index) if one.unit == atom.unit else one for one in work.atoms]


def with_both_ends(work: Work) -> None:
    """See that the user begins and has the last word, where the provider wants that."""
    speakers = [atom for atom in work.atoms if atom.side is not Side.SYSTEM]
    if not speakers:
        return
    if work.minds("begin") and speakers[0].side is Side.MODEL and work.shape.merges:
        work.tell("begin", speakers[0], "a note was put before it: the conversation began with the model's words")
        number = work.atoms.index(speakers[0])
        work.atoms[number:number] = work.added(work.shape.user([Text(EARLIER_LEFT_OUT)]))
    if work.minds("end") and speakers[-1].side is Side.MODEL:
        work.tell("end", speakers[-1], "a marker was put behind it: the conversation ended with the model's words")
        work.atoms += work.added(work.shape.user([Text(marker_text(InterruptReason.UNKNOWN))]))
