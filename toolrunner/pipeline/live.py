"""Row 9: one started body until it is over. It is awaited unconditionally; stops are delivered, and told while they last.

State: one LiveBody per attempt, changed in its own task and by callbacks on the same loop. When the body ends, in this order: its
clock stops, its children end, the scan is made, `call/ended` is durable, what a stopped call did is undone, and only then locks
and places are given back.
"""

import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import final

import anyio

from toolrunner.abort import AbortSignal
from toolrunner.facts import StillRunning, StillRunningKind, StopPhase
from toolrunner.loops import call_later, call_soon
from toolrunner.pipeline.bodies import Body
from toolrunner.pipeline.compensate import compensate
from toolrunner.pipeline.deadlines import Deadline
from toolrunner.pipeline.durable import journal_problem
from toolrunner.pipeline.ends import BodyEnd
from toolrunner.pipeline.finish import body_result
from toolrunner.pipeline.nesting import body_context
from toolrunner.pipeline.reconcile import note_doubt
from toolrunner.pipeline.retry import will_retry
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.spilled import keep_spilled
from toolrunner.pipeline.state import ActiveCall
from toolrunner.pipeline.watching import end_watch
from toolrunner.records import CallEnded, CallStopDelivered, CallStopRequested, StillRunningReport, now
from toolrunner.tasks import Happening, OwnedTask, wait_through

REPORT_AFTER = 0.5
"""Seconds after a stop was delivered until the first report that the body still runs; a person begins to wonder about then."""

REPORT_AT_MOST = 10.0
"""Seconds between two such reports at the most; the pauses double up to here."""


def leave_running(state: ActiveCall) -> None:
    """Let a call be settled although its body, in this process, runs on. It keeps what it holds until it ends."""
    # What had asked it to stop, or a later abort would become the cause.
    state.cause = state.cause or state.body_signal.reason
    state.left_running = (StillRunning(what=state.name, kind=StillRunningKind.BODY, since=state.stop.delivered_at),)
    state.published_early.set()


@final
class LiveBody:
    """One body in its own task."""

    def __init__(
        self,
        state: ActiveCall,
        services: Services,
        body: Body,
        signal: AbortSignal,
        allowed: Callable[[AbortSignal], bool],
        give_back: Callable[[], None],
    ) -> None:
        self._state = state
        self._services = services
        self._body = body
        self._allowed = allowed
        self._give_back = give_back
        self._signal = signal
        self._deadline: Deadline | None = None
        self._task: OwnedTask | None = None
        self._timers: list[Callable[[], None]] = []
        self._since: datetime | None = None
        self._entered = False
        self._broken: Exception | None = None
        """A bug of ours around the body; its call waits in another task, which raises it."""

    async def run(self, wait: Callable[[Happening], Awaitable[None]]) -> None:
        """Start the body's task and wait, with `wait`: for its end, or until the call is published early."""
        state = self._state
        if state.published_early.is_set():  # by an earlier attempt's end
            state.published_early = Happening()
        state.lives = True
        self._task = self._services.root.spawn(self._live, f"body {state.name}", context=body_context(state, self._services))
        # Cancelled natively while it waits: by a wrapper that has a clock of its own, which only listens. (The loop's own
        # tear-down reaches the body's task as well, and is told from there.)
        await wait(state.published_early)
        if self._broken is not None:
            raise self._broken

    async def _live(self) -> None:
        try:
            await self._enter_and_end()
        except Exception as error:
            self._broken = error
            if self._state.published_early.is_set():
                raise  # nobody waits any more: the task's own log is where it is heard of
        finally:
            self._state.lives = False
            self._state.published_early.set()
            if self._state.left_running:  # its call was settled without it, so nobody else is there to do it
                self._give_back()

    async def _enter_and_end(self) -> None:
        state = self._state
        assert self._task is not None
        self._start_clock()
        unsubscribe = state.body_signal.on_abort(self._deliver)
        try:
            end = await self._body.run(self._gate, self._task)
        finally:
            unsubscribe()
            self._entered = False
            for take_back in self._timers:
                take_back()
            if self._deadline is not None:
                self._deadline.cancel()
        # From here on every wait has a shield of its own; most calls have none to wait for.
        if end is None:
            await end_watch(state, self._services)
            return
        await self._take_end(end)

    async def _take_end(self, end: BodyEnd) -> None:
        """All that follows the end of a body, in the order that the module names."""
        state = self._state
        # What had asked it to stop when it ended: the first check of row 10.
        state.cause = state.body_signal.reason
        if state.cause is not None:
            state.stop.request(state.cause, StopPhase.RUNNING)
        if state.stop.reason is not None:
            state.stop.ended_at = now()
        await self._wait_for_children()
        state.scan = await end_watch(state, self._services)
        state.end = end
        if end.process is not None and end.process.spill:
            await keep_spilled(state, self._services)
        await self._record_end()
        if state.cause is not None:
            await compensate(state, self._services)
        if not will_retry(state):
            note_doubt(state, self._services)
            self._give_back()

    async def _wait_for_children(self) -> None:
        state, waited = self._state, set[ActiveCall]()
        while rest := state.children - waited:  # a task of the body's may begin one while another is waited for
            waited |= rest
            for child in rest:
                await wait_through(child.settled)
        state.takes_children = False

    def _gate(self) -> bool:
        self._entered = self._allowed(self._signal)
        if self._entered and self._state.body_signal.aborted:
            # The abort came while a worker thread passed this gate: the loop has heard of it already, and found nobody to tell.
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._services.post(self._deliver)
        return self._entered

    def _start_clock(self) -> None:
        """The body's own clock and its merged signal.

        A process's clock is its keeper's: a starved loop must not stop it. A shell that lives on has none there for one line.
        """
        state = self._state
        # Without drains: also one that a wrapper brought in lets a started body finish.
        signals = [self._signal if self._signal is state.body_signal else self._signal.immediate()]
        assert state.registration is not None
        own = state.line.timeout if state.line is not None else None
        seconds = next((one for one in (state.call.timeout, own, state.registration.tool.timeout) if one is not None), None)
        if seconds is not None and (state.in_process or state.line is not None):
            self._deadline = Deadline(seconds, "the time limit")
            signals.append(self._deadline.signal)
        state.body_signal = AbortSignal.any(*signals) if len(signals) > 1 else signals[0]
        state.shown_signal = AbortSignal.any(state.body_signal)

    def _deliver(self) -> None:
        """The abort reached the running body. First the trace, then the body is told."""
        state = self._state
        reason = state.body_signal.reason
        if reason is None or not self._entered or self._since is not None:
            return
        if state.stop.request(reason, StopPhase.RUNNING):
            self._services.emit(
                CallStopRequested(run_id=state.run_id, source=reason.source, reason=reason.text, phase=StopPhase.RUNNING)
            )
        self._body.deliver()
        state.stop.delivered_at = now()
        self._services.emit(CallStopDelivered(run_id=state.run_id))
        self._since = state.stop.delivered_at
        # After the body has had its turn: most have ended by then, and need no clock.
        call_soon(self._report_unless_over)
        if self._services.limits.settle_timeout is not None and state.in_process:
            self._timers.append(call_later(self._services.limits.settle_timeout, self._publish_early))

    def _report_unless_over(self) -> None:
        if self._entered:
            self._report_later(REPORT_AFTER, REPORT_AFTER)

    def _report_later(self, seconds: float, waited: float) -> None:
        def report() -> None:
            self._services.emit(StillRunningReport(run_id=self._state.run_id, what=(self.still_running(),), waited=waited))
            pause = min(seconds * 2, REPORT_AT_MOST)
            self._report_later(pause, waited + pause)

        self._timers.append(call_later(seconds, report))

    def still_running(self) -> StillRunning:
        """The body, as a result or report lists it."""
        kind = StillRunningKind.BODY if self._state.in_process else StillRunningKind.PROCESS
        return StillRunning(what=self._state.name, kind=kind, since=self._since)

    def _publish_early(self) -> None:
        leave_running(self._state)

    async def _record_end(self) -> None:
        result = body_result(self._state)
        pending = self._services.emit(
            CallEnded(
                run_id=result.run_id,
                outcome=result.outcome,
                code=result.code,
                ended=result.ended,
                started=result.started,
                value=result.value,
                result=result,
            )
        )
        if pending is None:
            await journal_problem(self._state, self._services, None)
            return
        with anyio.CancelScope(shield=True):
            await journal_problem(self._state, self._services, pending)
