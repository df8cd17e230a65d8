"""The first of the five questions: may the same call be made again?"""

from toolrunner.facts import Effects, EffectState, Evidence
from toolrunner.results.words import Code, ErrorKind, Outcome, Retry

_UNSTARTED: dict[Code | None, Retry] = {
    Code.ABORTED_BEFORE_DISPATCH: Retry.SAFE,
    Code.GRANT_EXPIRED: Retry.SAFE,
    Code.DENIED: Retry.NO,
    Code.IN_DOUBT: Retry.CHECK_FIRST,
    None: Retry.NO,
}
"""Calls that never started; what is not listed needs a change of the call or of its surroundings first."""

_TRANSIENT = frozenset({ErrorKind.LIMIT, ErrorKind.HOOK_TIMEOUT})


def retry_answer(  # noqa: PLR0913 - all that the answer rests on
    outcome: Outcome,
    code: Code | None,
    started: bool,
    effects: Effects,
    *,
    idempotent: bool,
    error_kind: str | None = None,
    still_running: bool = False,
) -> Retry:
    """Whether to retry. `safe` needs a proof that nothing happened, or a tool that declares itself idempotent.

    A call of which something still runs is never safe to make again: idempotent means one after the other, not both at once.
    """
    if not started:
        return _UNSTARTED.get(code, Retry.SAFE if error_kind in _TRANSIENT else Retry.FIX_FIRST)
    if outcome is Outcome.SUCCEEDED:
        return Retry.NO
    harmless = not still_running and (idempotent or effects.state in (EffectState.NONE, EffectState.REVERTED))
    if outcome is Outcome.FAILED and code not in (Code.LOST, Code.KEEPER_LOST):
        return Retry.FIX_FIRST if harmless else Retry.CHECK_FIRST
    if harmless:
        return Retry.SAFE
    if effects.state is EffectState.COMPLETED and effects.evidence is not Evidence.ASSUMED:
        return Retry.NO
    return Retry.CHECK_FIRST
