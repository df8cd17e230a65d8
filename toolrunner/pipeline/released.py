"""What all bodies in processes share: the wait for the end of a released process, and the note of its stop. No state."""

import anyio

from toolrunner.facts import AbortReason, Source, StopPhase
from toolrunner.pipeline.bodies import torn_down
from toolrunner.pipeline.state import ActiveCall
from toolrunner.process import Prepared, ProcessEnd
from toolrunner.results import Error


async def released_end(state: ActiveCall, prepared: Prepared) -> ProcessEnd:
    """Wait for the end. The loop's own tear-down does not end the wait: the process must not outlive the loop."""
    while True:
        try:
            with anyio.CancelScope(shield=True):
                return await prepared.wait()
        except anyio.get_cancelled_exc_class():
            # Kill now, and go on waiting.
            torn_down(state)
            prepared.stop(grace=0)


def never_ran(state: ActiveCall, end: ProcessEnd) -> bool:
    """Whether the release proved to have started nothing; the call is refused then."""
    if end.started:
        return False
    error = end.spawn_error
    state.never_ran(Error(error.kind, error.message) if error is not None else None)
    return True


def note_stop(state: ActiveCall, end: ProcessEnd, *, timed_out: bool) -> None:
    """The signals that were sent, and the keeper's own clock as a reason."""
    trace = state.stop
    trace.signals, trace.escalated = end.signals, end.escalated
    if timed_out:
        trace.request(AbortReason(Source.TIMEOUT, "the time limit is over"), StopPhase.RUNNING, end.stop_requested_at)
    if trace.reason is not None and end.delivered_at is not None:
        trace.delivered_at = trace.delivered_at or end.delivered_at
