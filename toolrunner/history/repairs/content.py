"""Repairs within a message: what cannot be sent is left out, what was written wrongly is mended. Pure; no state but `Work`."""

from typing import Any

from toolrunner.history.atoms import Atom, Kind, Side
from toolrunner.history.pairing import answers_to, paired
from toolrunner.history.repairs.work import Work
from toolrunner.history.rules.gemini import current_turn
from toolrunner.wire import Item, Provider
from toolrunner.wire.reading import loaded

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""Google's own word for "there was a signature and it is lost" (Gemini API, "Thought signatures")."""

_UNFINISHED = frozenset({"incomplete", "in_progress", "failed", "cancelled"})


def leave_out_unsendable(work: Work) -> None:
    """Leave out blanks, thoughts without their signature, calls that name nothing or were never finished, with their results."""
    if work.minds("blank"):
        work.leave_out("blank", lambda atom: atom.kind is Kind.BLANK, "left out: it says nothing")
    if work.minds("unsigned"):
        work.leave_out(
            "unsigned", lambda atom: atom.kind is Kind.THINKING and not atom.signed, "left out: its signature is not whole"
        )
    if work.minds("nameless"):
        _leave_out_calls(work, "nameless", lambda atom: not atom.name.strip(), "left out: it names no function")
    if work.minds("unfinished"):
        _leave_out_calls(work, "unfinished", _is_unfinished, "left out: it was never finished")
    if work.minds("server"):
        _leave_out_server_halves(work)


def _is_unfinished(call: Atom) -> bool:
    native = str(call.item.get("type")) in ("shell_call", "local_shell_call", "apply_patch_call")
    return not native and call.item.get("status") in _UNFINISHED


def _leave_out_calls(work: Work, what: str, unwanted: Any, text: str) -> None:
    calls = [atom for atom in work.atoms if atom.kind is Kind.CALL and unwanted(atom)]
    answers = paired(work.shape, work.groups).answers
    gone = {*calls, *(answers[call] for call in calls if call in answers)}
    if gone:
        work.leave_out(what, lambda atom: atom in gone, text)


def _leave_out_server_halves(work: Work) -> None:
    gone = set[Atom]()
    for group in work.groups:
        made = {atom.call_id for atom in group if atom.kind is Kind.SERVER_CALL}
        told = {atom.call_id for atom in group if atom.kind is Kind.SERVER_RESULT}
        mixed = any(atom.kind is Kind.CALL for atom in group)
        gone |= {atom for atom in group if atom.kind is Kind.SERVER_RESULT and atom.call_id not in made}
        gone |= {atom for atom in group if atom.kind is Kind.SERVER_CALL and atom.call_id not in told and not mixed}
    if gone:
        work.leave_out("server", lambda atom: atom in gone, "left out: the provider's own call and its result go together")


def mend_calls(work: Work) -> None:
    """Write right what was written wrongly: arguments, names in results, lost signatures, thoughts that only some steps bring."""
    match work.shape.provider:
        case Provider.OPENAI_CHAT:
            _mend_chat_arguments(work)
            _mend_chat_thoughts(work)
        case Provider.GEMINI:
            _mend_gemini(work)
        case Provider.GEMINI_INTERACTIONS:
            _mend_interactions(work)
        case _:
            pass


def _mend_chat_arguments(work: Work) -> None:
    for atom in list(work.atoms):
        function = atom.item.get("function") if atom.kind is Kind.CALL else None
        if not isinstance(function, dict):
            continue
        arguments = function.get("arguments")
        if not isinstance(arguments, str) or not isinstance(loaded(arguments), dict):
            item = {**atom.item, "function": {**function, "arguments": "{}"}}
            work.change("arguments", atom, item, f"its arguments were no JSON object: {str(arguments)[:80]!r}")


def _mend_chat_thoughts(work: Work) -> None:
    loop = list[Atom]()
    for group in work.groups:
        if group[0].side is Side.USER and group[0].kind is not Kind.RESULT:
            loop = []
        elif any(atom.kind is Kind.CALL for atom in group):
            loop.append(group[0])
    thoughts = [bool(head.item.get("reasoning_content")) for head in loop]
    if any(thoughts) and not all(thoughts):
        for head in loop:
            if head.item.get("reasoning_content"):
                item = {key: value for key, value in head.item.items() if key != "reasoning_content"}
                work.change(
                    "thought", head, item, "its reasoning_content was left out: other steps of this loop have lost theirs"
                )


def _mend_gemini(work: Work) -> None:
    for atom in list(work.atoms):
        key = "functionCall" if isinstance(atom.item.get("functionCall"), dict) else "function_call"
        call = atom.item.get(key) if atom.kind is Kind.CALL else None
        if isinstance(call, dict) and not isinstance(call.get("args", {}), dict | None):
            item = {**atom.item, key: {**call, "args": {"INVALID_JSON": call["args"]}}}
            work.change("arguments", atom, item, "its args were no object")
    if not any(atom.signed for atom in work.atoms if atom.kind is Kind.CALL):
        return
    for group in current_turn(work.groups):
        first = next((atom for atom in group if atom.kind is Kind.CALL), None)
        if first is not None and not first.signed:
            signed = {**first.item, "thoughtSignature": SKIP_SIGNATURE}
            work.tell("signature", first, "its thoughtSignature is lost; the constant for that stands in its place")
            work.atoms = [_signed(one, signed) if one is first else one for one in work.atoms]


def _signed(atom: Atom, item: Item) -> Atom:
    return Atom(atom.side, atom.kind, item, atom.unit, atom.index, atom.call_id, atom.name, signed=True)


def _mend_interactions(work: Work) -> None:
    calls = list[Atom]()
    for atom in list(work.atoms):
        if atom.kind is Kind.CALL:
            calls.append(atom)
            arguments = atom.item.get("arguments")
            if not isinstance(arguments, dict):
                wrapped = {} if arguments in (None, "") else {"INVALID_JSON": arguments}
                work.change("arguments", atom, {**atom.item, "arguments": wrapped}, "its arguments were no object")
        elif atom.kind is Kind.RESULT and not atom.name:
            named = next((call.name for call in calls if answers_to(call, atom)), "")
            if named:
                work.change("result", atom, {**atom.item, "name": named}, "the name of its function was missing")
