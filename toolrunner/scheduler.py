"""Scheduler: a batch of calls, in the model's order, through the same prepare, act and finish as single calls.

A run of parallel-safe calls is a rolling pool; any other call is a barrier. Hooks and commits are observed in model order. State:
one BatchRun per batch; which calls are acting is changed by `_Place` only, synchronously, and every change wakes all who wait.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, final

import anyio

from toolrunner.abort import AbortController, AbortSignal
from toolrunner.calls import ToolCall
from toolrunner.facts import AbortMode, AbortReason, Source, Stop, StopPhase
from toolrunner.pipeline.bodies import TORN_DOWN
from toolrunner.pipeline.course import accept, close_truthfully, settle, until_over
from toolrunner.pipeline.deadlines import Deadline
from toolrunner.pipeline.finish import publish
from toolrunner.pipeline.foreign import interrupt_in
from toolrunner.pipeline.prepare import prepare
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.records import now
from toolrunner.results import BatchResult, Code, Error, ErrorKind, Outcome
from toolrunner.tasks import wait_in_own_task
from toolrunner.tools import InvalidArguments

_logger = logging.getLogger("toolrunner")


def _nobody(*_: object) -> None:
    """In the place of a batch that is over: there is nobody left to tell."""


@final
class BatchRun:
    """One batch from submission to its last commit."""

    def __init__(  # noqa: PLR0913 - each is a fact of the batch's own
        self,
        calls: Sequence[ToolCall],
        services: Services,
        signal: AbortSignal,
        *,
        max_parallel: int,
        deps: Any,
        deadline: float | None,
        keep: Callable[[ActiveCall], object] = lambda _: None,
        attach: Callable[[str], AbortSignal | None] = lambda _: None,
    ) -> None:
        self._services = services
        self._max_parallel = max_parallel
        self.controller = AbortController()
        """Aborts this batch: hooks, approvers, the host's cancellation and our own failures."""
        self._deadline = Deadline(deadline, "the deadline") if deadline is not None else None
        parts = [signal, self.controller.signal, *([self._deadline.signal] if self._deadline is not None else [])]
        self.signal = AbortSignal.any(*parts)
        self._acting: dict[ActiveCall, bool] = {}
        """Calls that hold a place, and whether they hold it alone."""
        self._alone = 0
        """How many of them hold it alone: 0 or 1."""
        self._queued: dict[ActiveCall, None] = {}
        """Calls that were begun and have not taken a place yet; in model order. Few: it is looked through for every start."""
        self._open: dict[ActiveCall, None] = {}
        """Calls that were begun and whose body is not over; in model order."""
        self._changes: set[anyio.Event] = set()
        self.failure: BaseException | None = None
        """The first error of ours, or a KeyboardInterrupt or SystemExit out of a body; raised when everything is drained."""
        self._stop: Stop | None = None
        self.done = anyio.Event()
        self.states: list[ActiveCall] = []
        try:
            self._accept(calls, deps, attach)
        except BaseException as error:
            self._take_back(error)
            raise
        for state in self.states:
            keep(state)

    def _accept(self, calls: Sequence[ToolCall], deps: Any, attach: Callable[[str], AbortSignal | None]) -> None:
        seen: set[str] = set()
        for index, call in enumerate(calls):
            state = accept(call, self._services, self.signal, self.abort, deps=deps, attach=attach)
            state.index = index
            state.previous = self.states[-1] if self.states else None
            state.moved = self._poke
            self.states.append(state)
            self._refuse_repeated_id(state, seen)

    def _take_back(self, error: BaseException) -> None:
        """Not all calls could be accepted. Those that were have their results all the same, and no clock runs on."""
        if self._deadline is not None:
            self._deadline.cancel()
        for state in self.states:
            close_truthfully(state, error)
            publish(state, self._services)

    @staticmethod
    def _refuse_repeated_id(state: ActiveCall, seen: set[str]) -> None:
        """Two calls with one id would get answers that nobody can tell apart, so the second one is refused."""
        call_id = state.call.call_id
        if call_id is not None and call_id in seen:
            text = f"call id {call_id!r} is used by an earlier call of this batch"
            state.refuse(Outcome.REJECTED, Code.INVALID_ARGUMENTS, Error(ErrorKind.INVALID_ARGUMENTS, text))
        elif call_id is not None:
            seen.add(call_id)

    def abort(self, reason: AbortReason, mode: AbortMode = AbortMode.IMMEDIATE) -> bool:
        """Stop the batch: nothing new starts, what runs is told (or, with `drain`, finishes)."""
        return self.controller.abort(reason.text, mode=mode, source=reason.source)

    async def run(self) -> None:
        """The batch's own task. Lets nothing out: `failure` says what went wrong, and every call has its result."""
        unsubscribe = self.signal.on_abort(self._note_stop)
        try:
            await self._start_all()
        except BaseException as error:  # noqa: BLE001 - kept and raised by whoever waits, once everything is drained
            self._fail(error)
        finally:
            await self._drain()
            unsubscribe()
            if self._deadline is not None:
                self._deadline.cancel()
            if self.signal.aborted:
                self._note_stop()
            self._let_go()
            self.done.set()

    def _let_go(self) -> None:
        """Calls refer to their batch and it to them. What is over is freed at once, not by the collector: that is dear."""
        for state in self.states:
            if not state.lives:  # a body that was published early still says so when the loop is torn down
                state.moved, state.stop_batch = _nobody, _nobody

    def result(self) -> BatchResult:
        """All results, once `done`."""
        return BatchResult(tuple(state.result for state in self.states if state.result is not None), self._stop)

    async def _start_all(self) -> None:
        """Start calls in model order, each when there is room. After an abort the rest is only closed, without a task each."""
        for index, state in enumerate(self.states):
            await self._wait_for(partial(self._may_begin, index))
            if self.signal.aborted:
                return
            self._open[state] = self._queued[state] = None
            self._services.root.spawn(partial(self._live, index), f"call {state.name}", context=state.context.copy())
            # Hooks are observed in model order; a pending approval holds nobody up.
            await wait_in_own_task(state.decided, self._torn_down)

    async def _live(self, index: int) -> None:
        """One call's own task."""
        state = self.states[index]
        state.has_task = True
        try:
            try:
                await until_over(state, self._services, _Place(self, index))
            finally:
                state.decided.set()
                self._is_over(state)
            if state.end is not None and state.end.fatal is not None:
                self._fail(state.end.fatal)
            await settle(state, self._services)
        except BaseException as error:  # noqa: BLE001 - ours, or the loop's tear-down; the call itself was closed truthfully
            self._fail(error)
        finally:
            publish(state, self._services)

    async def _drain(self) -> None:
        """Wait for what was started, and close what was not, in model order."""
        for state in self.states:
            if state.has_task:
                await wait_in_own_task(state.settled, self._torn_down)
                continue
            try:
                await prepare(state, self._services)
                close_truthfully(state, self.failure or RuntimeError("it was not reached"))
                self._is_over(state)
                await settle(state, self._services)
            except BaseException as error:  # noqa: BLE001 - the next calls must get their results all the same
                self._fail(error)
                close_truthfully(state, error)
                publish(state, self._services)

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error
        fatal = interrupt_in(error)
        if isinstance(error, anyio.get_cancelled_exc_class()):
            self._torn_down()
        elif fatal is not None:
            self.abort(AbortReason(Source.HOST, type(fatal).__name__))
        else:
            _logger.error("a batch broke off", exc_info=error)
            self.abort(AbortReason(Source.HOST, "toolrunner failed"), AbortMode.DRAIN)

    def _torn_down(self) -> None:
        self.abort(TORN_DOWN)

    def _note_stop(self) -> None:
        reason = self.signal.reason
        if self._stop is None and reason is not None:
            running = any(state.started for state in self._open)
            phase = StopPhase.RUNNING if running else StopPhase.BEFORE_DISPATCH
            self._stop = Stop(reason.source, reason.text, phase, requested_at=now())
        self._poke()

    # Places. All synchronous but `_wait_for`.

    def is_exclusive(self, state: ActiveCall) -> bool:
        """Whether a call must have the batch to itself, as its tool says now. One that will be refused anyway need not."""
        registration = self._services.catalogue.find(state.name)
        if registration is None or state.refusal is not None or not isinstance(state.arguments, dict):
            return False
        tool = registration.tool
        if not callable(tool.parallel_safe):
            return not tool.is_parallel({})
        try:
            return not tool.is_parallel(state.kwargs or tool.parse(state.arguments))
        except InvalidArguments:
            return False

    def _may_begin(self, index: int) -> bool:
        return self.signal.aborted or self._room(index) is not None

    def _room(self, index: int) -> bool | None:
        """Whether call `index` is to have the batch to itself, if it may have a place now; else None.

        A call that waits for its approval is no barrier and holds no place: it may wait for a person, and others need not.
        """
        if self._alone:
            return None
        earlier = [one for one in self._queued if one.index < index and not one.waiting_for_approval]
        if self.is_exclusive(self.states[index]):
            return True if not earlier and not self._acting else None
        has_room = len(self._acting) < self._max_parallel and not any(self.is_exclusive(one) for one in earlier)
        return False if has_room else None

    async def take_place(self, index: int) -> None:
        """Wait for a place and take it; read anew whether the call is exclusive. An abort ends the wait without a place."""
        state = self.states[index]
        self._open[state] = self._queued[state] = None  # again, if it had given its place back to ask once more
        room: bool | None = None

        def may_act() -> bool:
            nonlocal room
            room = self._room(index)
            return self.signal.aborted or room is not None

        await self._wait_for(may_act)
        # Taken at the word by which there was room: the tool's own code may say something else the next time.
        if room is not None and not self.signal.aborted:
            self._queued.pop(state, None)
            self._acting[state] = room
            self._alone += room

    def give_place(self, index: int) -> None:
        """The call's body is over, or will never start."""
        self._alone -= self._acting.pop(self.states[index], False)
        self._is_over(self.states[index])

    def _is_over(self, state: ActiveCall) -> None:
        self._open.pop(state, None)
        self._queued.pop(state, None)
        self._poke()

    def _poke(self) -> None:
        for change in self._changes:
            change.set()

    async def _wait_for(self, condition: Callable[[], bool]) -> None:
        while not condition():
            change = anyio.Event()
            self._changes.add(change)
            try:
                await change.wait()
            finally:
                self._changes.discard(change)


@final
class _Place:
    """A call's Permit."""

    def __init__(self, batch: BatchRun, index: int) -> None:
        self._batch = batch
        self._index = index

    async def take(self) -> None:
        """Wait for the place."""
        await self._batch.take_place(self._index)

    def release(self) -> None:
        """Give it back."""
        self._batch.give_place(self._index)
