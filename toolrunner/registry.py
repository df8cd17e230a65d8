"""Registry: one call through all rows. It composes prepare, act and finish and adds nothing to them.

No state of its own; the call's is its ActiveCall, the runner's its Services. A call runs in a task that the runner owns, so nobody
who merely waits for its result can pierce it.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, final
from uuid import uuid4

import anyio

from toolrunner.abort import AbortSignal
from toolrunner.calls import ToolCall
from toolrunner.effects import EffectLedger
from toolrunner.facts import AbortReason, EffectRecord, EffectStage, EffectState, Source
from toolrunner.pipeline.act import FreePermit, Permit, act
from toolrunner.pipeline.finish import Turn, finish, publish
from toolrunner.pipeline.prepare import prepare, record
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.results import Code, Error, ErrorKind, Outcome, ToolResult

_logger = logging.getLogger("toolrunner")


def accept(
    call: ToolCall,
    services: Services,
    signal: AbortSignal,
    stop_batch: Callable[[AbortReason], object],
    *,
    deps: Any = None,
    parent: ActiveCall | None = None,
    attach: Callable[[str], object] = lambda _: None,
) -> ActiveCall:
    """Row 0: take a call. From here on it gets exactly one result. `attach` is told its run id before its first record."""
    run_id = uuid4().hex
    attach(run_id)
    ledger = EffectLedger(run_id, services.emit, loop_call=services.loop_call)
    state = ActiveCall(call=call, run_id=run_id, signal=signal, deps=deps, ledger=ledger, stop_batch=stop_batch, parent=parent)
    record(state, services)
    return state


async def run_one(state: ActiveCall, services: Services) -> ToolResult:
    """An accepted call that belongs to no batch, through rows 1 to 12."""
    await until_over(state, services, FreePermit())
    return await settle(state, services)


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


async def settle(state: ActiveCall, services: Services, turn: Turn | None = None) -> ToolResult:
    """Rows 10 to 12."""
    try:
        return await finish(state, services, turn)
    except BaseException as error:
        close_truthfully(state, error)
        publish(state, services)
        raise


def close_truthfully(state: ActiveCall, error: BaseException) -> None:
    """Something of ours broke off: the call is told by what is known. What has not started never will."""
    if state.started:
        return
    if isinstance(error, anyio.get_cancelled_exc_class()):
        state.refuse_because(state.signal.reason or AbortReason(Source.SHUTDOWN, "the event loop was torn down"))
    state.refuse(Outcome.ABORTED, Code.ABORTED_BEFORE_DISPATCH, Error(ErrorKind.EXCEPTION, f"toolrunner failed: {error!r}"))


@final
class ChildCalls:
    """`ctx.run`: calls made inside a body. The parent's merged signal, its locks, none of its pool.

    `keep` and `attach`, `settled` and `detach` are told of each child, so that it is found and heard of like any call.
    """

    def __init__(
        self,
        services: Callable[[], Services],
        *,
        keep: Callable[[ActiveCall], object],
        settled: Callable[[ActiveCall], object],
        adopt: Callable[[str, str], object],
        detach: Callable[[str], object],
    ) -> None:
        self._services = services
        self._keep = keep
        self._settled = settled
        self._adopt = adopt
        self._detach = detach

    async def run(self, parent: ActiveCall, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run one child and wait for it. A cancelled parent stops waiting; it does not end before the child does."""
        services = self._services()
        state = accept(
            ToolCall(name, arguments),
            services,
            parent.body_signal.named(Source.PARENT),
            parent.stop_batch,
            deps=parent.deps,
            parent=parent,
            attach=lambda run_id: self._adopt(run_id, parent.run_id),
        )
        parent.children.add(state)
        self._keep(state)

        async def live() -> None:
            try:
                await run_one(state, services)
            except Exception:  # closed truthfully; the parent reads it in the result
                _logger.exception("child call %s of %s broke off", state.run_id, parent.run_id)
            finally:
                publish(state, services)
                _roll_up(parent, state)
                self._settled(state)
                self._detach(state.run_id)

        services.root.spawn(live, f"call {name}")
        await state.settled.wait()
        assert state.result is not None
        return state.result


def _roll_up(parent: ActiveCall, child: ActiveCall) -> None:
    """A child's effects, and what it left running, are its parent's too."""
    parent.children.discard(child)
    result = child.result
    assert result is not None
    parent.ledger.roll_up(result.effects.records, owner=child.run_id)
    if result.effects.state in (EffectState.UNKNOWN, EffectState.PARTIAL):
        doubt = EffectRecord(f"{child.run_id}/call", "call", child.name, EffectStage.UNKNOWN, owner=child.run_id)
        parent.ledger.roll_up([doubt])
    parent.children_running = (*parent.children_running, *(result.still_running or ()))
