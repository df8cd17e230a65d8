"""The one table of what can be true together. Validators, texts and the docs are generated from it, so they cannot disagree."""

from dataclasses import dataclass

from toolrunner.facts import Effects, EffectState, Evidence
from toolrunner.results.words import Code, Ended, Outcome


@dataclass(frozen=True, slots=True)
class Row:
    """One legal family of results, and what it says to a model."""

    outcome: Outcome
    codes: frozenset[Code | None]
    started: frozenset[bool]
    ended: frozenset[Ended | None]
    text: str


def _row(
    outcome: Outcome, codes: tuple[Code | None, ...], started: tuple[bool, ...], ended: tuple[Ended | None, ...], text: str
) -> Row:
    return Row(outcome, frozenset(codes), frozenset(started), frozenset(ended), text)


_NEVER_STARTED = "It was not started, so it had no effects."

ROWS: tuple[Row, ...] = (
    _row(Outcome.SUCCEEDED, (None, Code.HOOKS_LOST), (True,), (Ended.RETURNED,), ""),
    # A wrapper answered in the body's place; the body was never entered.
    _row(Outcome.SUCCEEDED, (None,), (False,), (None,), ""),
    _row(Outcome.FAILED, (Code.TOOL_ERROR,), (True,), (Ended.RAISED, Ended.RETURNED), "The call failed."),
    _row(Outcome.FAILED, (Code.INVALID_OUTPUT,), (True,), (Ended.RETURNED,), "The call ran, but what it returned is not valid."),
    _row(Outcome.FAILED, (Code.EXIT_STATUS,), (True,), (Ended.RETURNED,), "The command ended with a non-zero exit status."),
    _row(
        Outcome.FAILED,
        (Code.KILLED_BY_SIGNAL,),
        (True,),
        (Ended.RETURNED,),
        "The command was killed by a signal that toolrunner did not send.",
    ),
    _row(Outcome.FAILED, (Code.LOST,), (True,), (Ended.LOST,), "The call was started; how it ended is not known."),
    _row(
        Outcome.FAILED,
        (Code.KEEPER_LOST,),
        (True,),
        (Ended.LOST,),
        "The supervisor of the command was lost; how the command ended is not known.",
    ),
    _row(
        Outcome.FAILED,
        (Code.HOOK_ERROR,),
        (True,),
        (Ended.RETURNED, Ended.RAISED, Ended.STOPPED),
        "The call ran, but a hook around it failed.",
    ),
    _row(Outcome.FAILED, (Code.HOOK_ERROR,), (False,), (None,), f"A wrapper around the call failed. {_NEVER_STARTED}"),
    _row(
        Outcome.ABORTED,
        (Code.ABORTED_BEFORE_DISPATCH,),
        (False,),
        (None,),
        f"The call was stopped before it started. {_NEVER_STARTED}",
    ),
    _row(Outcome.ABORTED, (Code.ABORTED,), (True,), (Ended.RETURNED,), "The call finished before it could be stopped."),
    _row(Outcome.ABORTED, (Code.ABORTED,), (True,), (Ended.STOPPED,), "The call was stopped while it ran."),
    _row(Outcome.ABORTED, (Code.ABORTED,), (True,), (Ended.LOST,), "The call was told to stop; how it ended is not known."),
    _row(Outcome.ABORTED, (Code.ABORTED,), (True,), (None,), "The call was told to stop and is still running."),
    _row(
        Outcome.TIMED_OUT,
        (Code.ABORTED_BEFORE_DISPATCH,),
        (False,),
        (None,),
        f"The deadline passed before the call started. {_NEVER_STARTED}",
    ),
    _row(
        Outcome.TIMED_OUT,
        (Code.TIMED_OUT,),
        (True,),
        (Ended.RETURNED,),
        "The call ran over its time limit and finished before it could be stopped.",
    ),
    _row(Outcome.TIMED_OUT, (Code.TIMED_OUT,), (True,), (Ended.STOPPED,), "The call ran over its time limit and was stopped."),
    _row(
        Outcome.TIMED_OUT,
        (Code.TIMED_OUT,),
        (True,),
        (Ended.LOST,),
        "The call ran over its time limit; how it ended is not known.",
    ),
    _row(Outcome.TIMED_OUT, (Code.TIMED_OUT,), (True,), (None,), "The call ran over its time limit and is still running."),
    _row(Outcome.DENIED, (Code.DENIED,), (False,), (None,), f"The call was not allowed. {_NEVER_STARTED}"),
    _row(
        Outcome.DENIED, (Code.GRANT_EXPIRED,), (False,), (None,), f"The approval no longer holds for this call. {_NEVER_STARTED}"
    ),
    _row(Outcome.REJECTED, (Code.UNKNOWN_TOOL,), (False,), (None,), f"No tool has this name. {_NEVER_STARTED}"),
    _row(Outcome.REJECTED, (Code.INVALID_ARGUMENTS,), (False,), (None,), f"The arguments are not valid. {_NEVER_STARTED}"),
    _row(
        Outcome.REJECTED,
        (Code.TOOL_CHANGED,),
        (False,),
        (None,),
        f"The tool was replaced after it was approved. {_NEVER_STARTED}",
    ),
    _row(
        Outcome.REJECTED,
        (Code.ENVIRONMENT_GONE,),
        (False,),
        (None,),
        f"The place it was approved to run in is gone. {_NEVER_STARTED}",
    ),
    _row(Outcome.REJECTED, (Code.SPAWN_REFUSED,), (False,), (None,), f"The command could not be started. {_NEVER_STARTED}"),
    _row(
        Outcome.REJECTED,
        (Code.SANDBOX_UNAVAILABLE,),
        (False,),
        (None,),
        f"The sandbox it needs is not available. {_NEVER_STARTED}",
    ),
    _row(
        Outcome.REJECTED,
        (Code.IN_DOUBT,),
        (False,),
        (None,),
        "An earlier call with the same key may have taken effect. This one was not started.",
    ),
    _row(Outcome.REJECTED, (Code.HOOK_ERROR,), (False,), (None,), f"A hook before the call failed. {_NEVER_STARTED}"),
)

_EVIDENCE: dict[EffectState, frozenset[Evidence | None]] = {
    EffectState.NONE: frozenset({Evidence.NOT_STARTED, Evidence.DECLARED, Evidence.REPORTED, Evidence.OBSERVED}),
    EffectState.COMPLETED: frozenset({Evidence.REPORTED, Evidence.OBSERVED, Evidence.ASSUMED}),
    EffectState.PARTIAL: frozenset({Evidence.REPORTED, Evidence.OBSERVED}),
    EffectState.UNKNOWN: frozenset({None, Evidence.REPORTED, Evidence.OBSERVED}),
    EffectState.REVERTED: frozenset({Evidence.REPORTED, Evidence.OBSERVED}),
}


def find_row(outcome: Outcome, code: Code | None, started: bool, ended: Ended | None) -> Row | None:
    """The row a result belongs to, or None when no row allows the combination."""
    return _INDEX.get((outcome, code, started, ended))


def illegal(outcome: Outcome, code: Code | None, started: bool, ended: Ended | None, effects: Effects) -> str | None:
    """Why these facts cannot be true together, or None when they can."""
    if find_row(outcome, code, started, ended) is None:
        return f"no row has outcome={outcome}, code={code}, started={started}, ended={ended}"
    if effects.evidence not in _EVIDENCE[effects.state]:
        return f"effects {effects.state} cannot rest on evidence {effects.evidence}"
    if (effects.evidence is Evidence.NOT_STARTED) == started:
        return f"evidence {effects.evidence} contradicts started={started}"
    # An assumption is allowed only where the body ran to its end and nothing went wrong in it.
    if effects.evidence is Evidence.ASSUMED and (ended is not Ended.RETURNED or code in _ERRORS_AFTER_RETURN):
        return f"effects cannot be assumed when ended={ended} and code={code}"
    return None


_ERRORS_AFTER_RETURN = frozenset({Code.TOOL_ERROR, Code.EXIT_STATUS, Code.KILLED_BY_SIGNAL})

_INDEX = {
    (row.outcome, code, started, ended): row
    for row in ROWS
    for code in row.codes
    for started in row.started
    for ended in row.ended
}
