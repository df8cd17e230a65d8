"""What a started body's end means: outcome and code, from how it ended and from what had asked it to stop. Pure; no state.

Precedence: what stopped it first, crossed with how it ended. A body's own error stays its own; a signal of ours before a process
ended makes the stop the cause; only a success is turned into an abort.
"""

from dataclasses import dataclass

from toolrunner.facts import AbortReason, Source
from toolrunner.pipeline.ends import BodyEnd
from toolrunner.results import Code, Ended, Outcome


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a started call is over."""

    outcome: Outcome
    code: Code | None


_SUCCEEDED = Verdict(Outcome.SUCCEEDED, None)
_ABORTED = Verdict(Outcome.ABORTED, Code.ABORTED)
_TIMED_OUT = Verdict(Outcome.TIMED_OUT, Code.TIMED_OUT)


def verdict(end: BodyEnd | None, cause: AbortReason | None) -> Verdict:
    """The verdict on one body. `end` is None while it still runs (a stopped call that is published early).

    `cause` is the first abort of the body's merged signal, or the caller's at a later check; None if nobody asked.
    """
    if end is None or end.ended is Ended.STOPPED:
        return _by_cause(end, cause)
    if end.ended is Ended.LOST:
        # The supervisor was lost after a stop of ours: the stop is still the reason why the call is over.
        return _by_cause(end, cause) if cause is not None or end.timed_out else Verdict(Outcome.FAILED, end.code or Code.LOST)
    if end.code is not None:
        return Verdict(Outcome.FAILED, end.code)
    if end.timed_out or cause is not None:
        return _by_cause(end, cause)
    return _SUCCEEDED


def _by_cause(end: BodyEnd | None, cause: AbortReason | None) -> Verdict:
    by_clock = (end is not None and end.timed_out) or (cause is not None and cause.source == Source.TIMEOUT)
    return _TIMED_OUT if by_clock else _ABORTED
