"""One call's way through all rows: accept it, run it until its body is over, settle it.

Registry and scheduler both compose a call from these, so single calls and batches cannot differ. No state. Whatever breaks off,
ours or the loop's tear-down, closes the call truthfully: exactly one result.
"""

import secrets
from collections.abc import Callable
from typing import Any

import anyio

from toolrunner.abort import AbortSignal
from toolrunner.calls import ToolCall
from toolrunner.effects import EffectLedger
from toolrunner.facts import AbortReason, Source, StillRunning, StillRunningKind
from toolrunner.pipeline.act import Permit, act
from toolrunner.pipeline.bodies import TORN_DOWN
from toolrunner.pipeline.ends import BodyEnd
from toolrunner.pipeline.finish import finish, publish
from toolrunner.pipeline.foreign import interrupt_in, type_name
from toolrunner.pipeline.prepare import prepare, record
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.results import Code, Ended, Error, ErrorKind, Outcome, ToolResult


def accept(  # noqa: PLR0913 - each is a fact of the call's own
    call: ToolCall,
    services: Services,
    signal: AbortSignal,
    stop_batch: Callable[[AbortReason], object],
    *,
    deps: Any = None,
    parent: ActiveCall | None = None,
    attach: Callable[[str], AbortSignal | None] = lambda _: None,
) -> ActiveCall:
    """Row 0: take a call. From here on it gets exactly one result.

    `attach` is told its run id before its first record, and may have a signal for this call alone.
    """
    run_id = secrets.token_hex(16)  # as random as a UUID, and a quarter of its price
    own = attach(run_id)
    if own is not None:
        signal = AbortSignal.any(signal, own)
    ledger = EffectLedger(run_id, services.emit, loop_call=services.loop_call)
    state = ActiveCall(call=call, run_id=run_id, signal=signal, deps=deps, ledger=ledger, stop_batch=stop_batch, parent=parent)
    record(state, services)
    return state


async def until_over(state: ActiveCall, services: Services, permit: Permit) -> None:
    """Rows 1 to 9. A bug of ours, or the loop's tear-down, closes the call truthfully and is raised again."""
    try:
        await prepare(state, services)
        if state.refusal is None:
            await permit.take()
            await act(state, services, permit)
    except BaseException as error:
        close_truthfully(state, error)
        raise
    finally:
        if not state.lives:
            permit.release()


async def settle(state: ActiveCall, services: Services) -> ToolResult:
    """Rows 10 to 12."""
    try:
        return await finish(state, services)
    except BaseException as error:
        close_truthfully(state, error)
        publish(state, services)
        raise


def close_truthfully(state: ActiveCall, error: BaseException) -> None:
    """Something of ours broke off: the call is told by what is known. What has not started never will."""
    if state.started:
        if state.end is None and not state.left_running:
            _tell_unfinished(state, error)
        return
    if isinstance(error, anyio.get_cancelled_exc_class()):
        state.refuse_because(state.signal.reason or TORN_DOWN)
    elif interrupt_in(error) is not None:
        state.refuse_because(AbortReason(Source.HOST, type_name(error)))
    state.refuse(Outcome.ABORTED, Code.ABORTED_BEFORE_DISPATCH, Error(ErrorKind.INTERNAL, f"toolrunner failed: {error!r}"))


def _tell_unfinished(state: ActiveCall, error: BaseException) -> None:
    """A body was entered and nobody saw its end: it is at work still, or what watched it broke."""
    if state.lives:
        state.left_running = (StillRunning(what=state.name, kind=StillRunningKind.BODY),)
    else:
        fact = Error(ErrorKind.INTERNAL, f"toolrunner failed: {error!r}")
        state.end = BodyEnd(Ended.LOST, error=fact, code=Code.LOST, still_running=None)
