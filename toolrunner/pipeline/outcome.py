"""Reads a call's state into the facts that a result, a hook and the retry decision need. Pure reading; nothing is changed."""

from toolrunner.effects import BodyFacts, fold
from toolrunner.facts import Effects
from toolrunner.pipeline.state import ActiveCall
from toolrunner.pipeline.verdict import Verdict, verdict
from toolrunner.results import Code, Ended, Outcome

_NOT_A_SUCCESS = frozenset({Code.TOOL_ERROR, Code.EXIT_STATUS, Code.KILLED_BY_SIGNAL, Code.KEEPER_LOST, Code.LOST})


def verdict_of(state: ActiveCall) -> Verdict:
    """Why the call is over, by its body, wrappers and post hooks."""
    if state.refusal is not None:
        # An error of a wrapper outranks the abort that kept the body from starting; a denial outranks the error.
        if state.refusal.code is Code.ABORTED_BEFORE_DISPATCH and state.wrapper_error is not None:
            return Verdict(Outcome.FAILED, Code.HOOK_ERROR)
        return Verdict(state.refusal.outcome, state.refusal.code)
    if not state.started:
        # A wrapper answered in the body's place.
        return (
            Verdict(Outcome.SUCCEEDED, None)
            if state.wrapper_error is None and state.post_error is None
            else Verdict(Outcome.FAILED, Code.HOOK_ERROR)
        )
    by_body = verdict(state.end, state.cause)
    if state.wrapper_error is not None or state.post_error is not None:
        return (
            Verdict(Outcome.FAILED, Code.HOOK_ERROR) if state.end is not None and state.end.ended is not Ended.LOST else by_body
        )
    return by_body


def effects_of(state: ActiveCall) -> Effects:
    """What is known of the call's effects."""
    end = state.end
    facts = BodyFacts(
        started=state.started,
        read_only=state.registration is not None and state.registration.tool.annotations.read_only,
        returned=end is not None and end.ended is Ended.RETURNED,
        succeeded=end is not None and end.code not in _NOT_A_SUCCESS,
        saw_abort=end is not None and end.saw_abort,
        silent_children=state.silent_children,
        records_before=state.records_before,
        process_exit_zero=None if end is None or end.process is None or not state.has_exit_status else end.code is None,
    )
    return fold(facts, state.ledger.records, state.scan)
