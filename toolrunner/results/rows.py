"""The one table of what can be true together. Validators, texts and the docs are generated from it, so they cannot disagree."""

from dataclasses import dataclass

from toolrunner.facts import Attribution, Effects, EffectStage, EffectState, Evidence
from toolrunner.results.words import Code, Ended, Outcome


@dataclass(frozen=True, slots=True)
class Row:
    """One legal family of results, and what it says: `text` to a model, in a sentence; `happened` to people, after the name."""

    outcome: Outcome
    codes: frozenset[Code | None]
    started: frozenset[bool]
    ended: frozenset[Ended | None]
    happened: str
    text: str


def _ran(outcome: Outcome, code: Code | None, ended: tuple[Ended | None, ...], happened: str, text: str) -> Row:
    return Row(outcome, frozenset({code}), frozenset({True}), frozenset(ended), happened, text)


def _unstarted(outcome: Outcome, code: Code | None, happened: str, text: str) -> Row:
    return Row(outcome, frozenset({code}), frozenset({False}), frozenset({None}), happened, text)


_RETURNED, _RAISED, _STOPPED, _LOST = (Ended.RETURNED,), (Ended.RAISED,), (Ended.STOPPED,), (Ended.LOST,)
_STILL_RUNS = (None,)

ROWS: tuple[Row, ...] = (
    Row(Outcome.SUCCEEDED, frozenset({None, Code.HOOKS_LOST}), frozenset({True}), frozenset(_RETURNED), "succeeded", ""),
    # A wrapper answered in the body's place; the body was never entered.
    _unstarted(Outcome.SUCCEEDED, None, "was answered without being run", ""),
    _ran(Outcome.FAILED, Code.TOOL_ERROR, (*_RAISED, *_RETURNED), "failed", "The call failed."),
    _ran(
        Outcome.FAILED,
        Code.INVALID_OUTPUT,
        _RETURNED,
        "ran, but what it returned is not valid",
        "The call ran, but what it returned is not valid.",
    ),
    _ran(Outcome.FAILED, Code.EXIT_STATUS, _RETURNED, "failed", "The command failed by its exit status."),
    _ran(
        Outcome.FAILED,
        Code.KILLED_BY_SIGNAL,
        _RETURNED,
        "was killed by a signal that toolrunner did not send",
        "The command was killed by a signal that toolrunner did not send.",
    ),
    _ran(
        Outcome.FAILED,
        Code.LOST,
        _LOST,
        "was started and lost sight of",
        "The call was started and lost sight of.",
    ),
    _ran(
        Outcome.FAILED,
        Code.KEEPER_LOST,
        _LOST,
        "lost its supervisor",
        "The supervisor of the command was lost.",
    ),
    _ran(
        Outcome.FAILED,
        Code.HOOK_ERROR,
        (*_RETURNED, *_RAISED, *_STOPPED),
        "ran, but a hook or wrapper around it failed",
        "The call ran, but a hook or wrapper around it failed.",
    ),
    _unstarted(
        Outcome.FAILED,
        Code.HOOK_ERROR,
        "was not run: a hook or wrapper around it failed",
        "A hook or wrapper around the call failed.",
    ),
    _unstarted(
        Outcome.ABORTED, Code.ABORTED_BEFORE_DISPATCH, "was stopped before it started", "The call was stopped before it started."
    ),
    _ran(
        Outcome.ABORTED,
        Code.ABORTED,
        _RETURNED,
        "finished before it could be stopped",
        "The call finished before it could be stopped.",
    ),
    _ran(Outcome.ABORTED, Code.ABORTED, _STOPPED, "was stopped while it ran", "The call was stopped while it ran."),
    _ran(
        Outcome.ABORTED,
        Code.ABORTED,
        _LOST,
        "was told to stop",
        "The call was told to stop.",
    ),
    _ran(
        Outcome.ABORTED,
        Code.ABORTED,
        _STILL_RUNS,
        "was told to stop and is still running",
        "The call was told to stop and is still running.",
    ),
    _unstarted(
        Outcome.TIMED_OUT,
        Code.ABORTED_BEFORE_DISPATCH,
        "missed its deadline before it started",
        "The deadline passed before the call started.",
    ),
    _ran(
        Outcome.TIMED_OUT,
        Code.TIMED_OUT,
        _RETURNED,
        "ran over its time limit and finished before it could be stopped",
        "The call ran over its time limit and finished before it could be stopped.",
    ),
    _ran(
        Outcome.TIMED_OUT,
        Code.TIMED_OUT,
        _STOPPED,
        "ran over its time limit and was stopped",
        "The call ran over its time limit and was stopped.",
    ),
    _ran(
        Outcome.TIMED_OUT,
        Code.TIMED_OUT,
        _LOST,
        "ran over its time limit",
        "The call ran over its time limit.",
    ),
    _ran(
        Outcome.TIMED_OUT,
        Code.TIMED_OUT,
        _STILL_RUNS,
        "ran over its time limit and is still running",
        "The call ran over its time limit and is still running.",
    ),
    _unstarted(Outcome.DENIED, Code.DENIED, "was not allowed", "The call was not allowed."),
    _unstarted(
        Outcome.DENIED,
        Code.GRANT_EXPIRED,
        "was not run: its approval no longer holds",
        "The approval no longer holds for this call.",
    ),
    _unstarted(Outcome.REJECTED, Code.UNKNOWN_TOOL, "was not run: no tool has this name", "No tool has this name."),
    _unstarted(
        Outcome.REJECTED, Code.INVALID_ARGUMENTS, "was not run: its arguments are not valid", "The arguments are not valid."
    ),
    _unstarted(
        Outcome.REJECTED,
        Code.TOOL_CHANGED,
        "was not run: the tool was replaced after it was approved",
        "The tool was replaced after it was approved.",
    ),
    _unstarted(
        Outcome.REJECTED,
        Code.ENVIRONMENT_GONE,
        "was not run: its surroundings are not as they were",
        "Its surroundings are not as they were when it was accepted.",
    ),
    _unstarted(Outcome.REJECTED, Code.SPAWN_REFUSED, "could not be started", "The command could not be started."),
    _unstarted(
        Outcome.REJECTED,
        Code.SANDBOX_UNAVAILABLE,
        "was not run: the sandbox it needs is not available",
        "The sandbox it needs is not available.",
    ),
    _unstarted(
        Outcome.REJECTED,
        Code.IN_DOUBT,
        "was not run: an earlier call may have taken effect",
        "The call was held back, because an earlier call may have taken effect.",
    ),
    _unstarted(Outcome.REJECTED, Code.HOOK_ERROR, "was not run: a hook before it failed", "A hook before the call failed."),
)

_EVIDENCE: dict[EffectState, frozenset[Evidence | None]] = {
    EffectState.NONE: frozenset({Evidence.NOT_STARTED, Evidence.DECLARED, Evidence.REPORTED, Evidence.OBSERVED}),
    EffectState.COMPLETED: frozenset({Evidence.REPORTED, Evidence.OBSERVED, Evidence.ASSUMED}),
    EffectState.PARTIAL: frozenset({Evidence.REPORTED, Evidence.OBSERVED}),
    EffectState.UNKNOWN: frozenset({None, Evidence.REPORTED, Evidence.OBSERVED}),
    EffectState.REVERTED: frozenset({Evidence.REPORTED, Evidence.OBSERVED}),
}

_ERRORS_AFTER_RETURN = frozenset({Code.TOOL_ERROR, Code.EXIT_STATUS, Code.KILLED_BY_SIGNAL})

_INDEX = {
    (row.outcome, code, started, ended): row
    for row in ROWS
    for code in row.codes
    for started in row.started
    for ended in row.ended
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
    return _unfounded(effects)


def _unfounded(effects: Effects) -> str | None:
    """A change is claimed by what is listed and not by a word: a record of the tool's own, or a change that was its alone."""
    if effects.state not in (EffectState.COMPLETED, EffectState.PARTIAL):
        return None
    if effects.evidence is Evidence.REPORTED and not any(
        record.stage is EffectStage.APPLIED and not record.is_around for record in effects.records
    ):
        return f"effects {effects.state} are reported, but no record says so"
    if effects.evidence is Evidence.OBSERVED and not any(
        change.attribution is Attribution.EXCLUSIVE for change in effects.changes or ()
    ):
        return f"effects {effects.state} are observed, but no change is listed that is the call's alone"
    return None
