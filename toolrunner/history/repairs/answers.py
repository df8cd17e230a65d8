"""Repairs between calls and results: each call gets its one answer, where its provider looks. Pure; no state but `Work`."""

from collections.abc import Sequence
from dataclasses import replace

from toolrunner.history.atoms import Atom, Kind, Side
from toolrunner.history.pairing import Pairing, paired
from toolrunner.history.repairs.work import Work
from toolrunner.history.rules.view import called
from toolrunner.wire import Item, Provider


def mend_answers(work: Work) -> None:
    """Order: ids first, since pairing needs them; then misplaced results are moved, and only what is still missing is made up."""
    _mend_ids(work)
    pairing = paired(work.shape, work.groups)
    if not (pairing.missing or pairing.orphans or pairing.repeated):
        return
    answers = {call: [result] for call, result in pairing.answers.items()}
    _move_misplaced(work, pairing, answers)
    for call in pairing.missing:
        if call not in answers:
            answers[call] = work.unknown_answer(call)
            work.tell("missing", call, f"answered {called(call)}: no result was on record")
    kept = {result for group in answers.values() for result in group}
    work.leave_out(
        "repeated", lambda atom: atom in pairing.repeated and atom not in kept, "left out: the call has its result already"
    )
    work.leave_out("orphan", lambda atom: atom in pairing.orphans and atom not in kept, "left out: it answers no call")
    _put_in_place(work, pairing, answers)


def _move_misplaced(work: Work, pairing: Pairing, answers: dict[Atom, list[Atom]]) -> None:
    """A real result that stands in the wrong place is worth more than a made-up one in the right place."""
    order = {atom: number for number, atom in enumerate(work.atoms)}
    free = list(pairing.orphans)
    for call in pairing.missing:
        # By id only: a name alone says too little about a result that stands somewhere else.
        own = (one for one in free if call.call_id and one.call_id == call.call_id and order[one] > order[call])
        result = next(own, None)
        if result is not None:
            free.remove(result)
            answers[call] = [result]
            work.tell("orphan", result, f"moved behind its call {called(call)}")


def _put_in_place(work: Work, pairing: Pairing, answers: dict[Atom, list[Atom]]) -> None:
    before = dict(pairing.answers)
    if work.shape.adjacent:
        work.atoms = [atom for group in _in_turn(work, before, answers) for atom in group]
        return
    placed = {result for call, results in answers.items() if call in before for result in results}
    waiting, atoms = list[Atom](), list[Atom]()
    for atom in work.atoms:
        if atom.kind is Kind.RESULT and atom not in placed:
            continue  # it is put behind its call
        if waiting and atom.side is not Side.MODEL and atom not in placed:
            atoms += waiting
            waiting = []
        atoms.append(atom)
        if atom.kind is Kind.CALL and atom not in before:
            waiting += answers.get(atom, [])
    work.atoms = [*atoms, *waiting]


def _in_turn(work: Work, before: dict[Atom, Atom], answers: dict[Atom, list[Atom]]) -> list[list[Atom]]:
    found = list[list[Atom]]()
    for group in work.groups:
        rest = [atom for atom in group if atom.kind is not Kind.RESULT]
        calls = [atom for atom in group if atom.kind is Kind.CALL and atom in answers]
        if rest:
            found.append(rest)
        own = [result for call in calls for result in answers[call]]
        # A complete set keeps the order it had: nothing of it need be written anew.
        if all(call in before for call in calls) and work.shape.provider is not Provider.GEMINI:
            own.sort(key=work.atoms.index)
        found.append(own)
    return found


def _mend_ids(work: Work) -> None:
    pairing = paired(work.shape, work.groups)
    for call in pairing.reused:
        group = next(group for group in work.groups if call in group)
        first = next(atom for atom in group if atom.kind is Kind.CALL and atom.call_id == call.call_id)
        answer = pairing.answers.get(call)
        if first is not call:
            gone = {call, answer}
            work.leave_out("repeated", lambda atom, gone=gone: atom in gone, "left out: its id belongs to another call")  # type: ignore[misc]
        else:
            _rename(work, call, answer)


def _rename(work: Work, call: Atom, answer: Atom | None) -> None:
    taken = {atom.call_id for atom in work.atoms}
    fresh = next(name for number in range(2, len(work.atoms) + 3) if (name := f"{call.call_id}_{number}") not in taken)
    work.tell("repeated", call, f"renamed to {fresh}: its id belongs to an earlier call")
    changed = {call: _with_id(work, call, fresh)}
    if answer is not None:
        changed[answer] = _with_id(work, answer, fresh)
    work.atoms = [changed.get(atom, atom) for atom in work.atoms]


_ID_FIELDS = {
    Provider.ANTHROPIC: ("id", "tool_use_id"),
    Provider.OPENAI_CHAT: ("id", "tool_call_id"),
    Provider.OPENAI_RESPONSES: ("call_id", "call_id"),
    Provider.GEMINI_INTERACTIONS: ("id", "call_id"),
}


def _with_id(work: Work, atom: Atom, call_id: str) -> Atom:
    fields: Sequence[str] = _ID_FIELDS[work.shape.provider]
    key = fields[0] if atom.kind is Kind.CALL else fields[1]
    if atom.item.get("type") == "local_shell_call_output":
        key = "id"
    item: Item = {**atom.item, key: call_id}
    return replace(atom, item=item, call_id=call_id)
