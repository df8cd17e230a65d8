"""Row 7: execute wrappers, outermost first, around the dispatch of one call.

A wrapper may add a signal, look at the result and put other content in its place. It listens only: it cannot end a body, and
whatever it does, a body that was started inside it is awaited. Its own code is bounded like any
hook's once there is nothing left for it to wait for. State: one `_Ring` per wrapper of one call.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import anyio

from toolrunner.abort import AbortSignal
from toolrunner.calls import ToolCall
from toolrunner.errors import ToolrunnerError
from toolrunner.facts.reasons import wrapper_source
from toolrunner.pipeline.bodies import is_stop
from toolrunner.pipeline.foreign import is_a
from toolrunner.pipeline.hooks import HookFailed, HookTask, Wrapper, hook_name
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.results import Code, Error, ErrorKind, Outcome, ToolResult
from toolrunner.tasks import wait_through
from toolrunner.tools import InvalidOutput, Reply

Dispatch = Callable[[AbortSignal], Awaitable[None]]
"""Row 8 and 9: run the body under this signal; what became of it is in the state."""


class NextMisused(ToolrunnerError):
    """A wrapper called `next` twice, late, or with another call. The second body it asked for was never started."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"next() {problem}")
        self.kind = "next_misused"


async def run_wrapped(state: ActiveCall, services: Services, dispatch: Dispatch, provisional: Callable[[], ToolResult]) -> None:
    """Run `dispatch` inside all wrappers. `provisional` builds the result as it stands, for wrappers to see."""
    # Nobody has been told of this one yet: until its body is entered, it is the caller's without drains.
    signal = state.body_signal if not state.attempts else state.signal.immediate()
    if not services.hooks.wrappers:  # most runners have none
        await dispatch(signal)
        return
    await _Ring(state, services, services.hooks.wrappers, dispatch, provisional).go_on(signal)


class _Ring:
    """One wrapper and what is inside it."""

    def __init__(
        self,
        state: ActiveCall,
        services: Services,
        wrappers: tuple[Wrapper, ...],
        dispatch: Dispatch,
        provisional: Callable[[], ToolResult],
    ) -> None:
        self._state = state
        self._services = services
        self._wrappers = wrappers
        self._dispatch = dispatch
        self._provisional = provisional
        self._task: HookTask | None = None
        self._called = False
        self._closed = False
        self._inside_over = anyio.Event()
        self._broken: Exception | None = None
        """What broke inside, and is nobody's answer: a bug of ours, which a wrapper must neither hide nor be blamed for."""

    async def go_on(self, signal: AbortSignal) -> None:
        """Run this ring's wrapper, or the dispatch when no wrapper is left."""
        if not self._wrappers:
            await self._dispatch(signal)
            return
        wrapper = self._wrappers[0]
        state = self._state

        async def next_(call: ToolCall, /, *, signal: AbortSignal | None = None) -> ToolResult:
            return await self._next(wrapper, call, outer, signal)

        outer = signal
        # In the context of the wrapper around it, so that what that one has set is seen here.
        self._task = HookTask(self._services.root, wrapper, lambda: wrapper(state.call, next_))
        unsubscribe = state.signal.on_abort(self._hurry)
        try:
            answer = await self._task.answer()
        except HookFailed as failed:
            await self._finish_inside()
            self._take_error(failed)
            return
        except BaseException:  # an interrupt for the host
            await self._finish_inside()
            raise
        finally:
            unsubscribe()
        await self._finish_inside()
        self._take_answer(wrapper, answer)

    def _hurry(self) -> None:
        """Start the wrapper's clock once nothing is left for it to wait for: what it wraps is over, or will not start any more.

        Before that it may take as long as it likes (it may be a queue), and while its inside runs it waits for that.
        """
        assert self._task is not None
        if not self._called or self._inside_over.is_set():
            self._task.limit(self._services.limits.hook_timeout)

    async def _next(self, wrapper: Wrapper, call: ToolCall, outer: AbortSignal, signal: AbortSignal | None) -> ToolResult:
        if self._called:
            raise NextMisused("was called a second time; a body is started once")
        if self._closed:
            raise NextMisused("was called after its wrapper had returned")
        if call != self._state.call:
            raise NextMisused("was called with another call; what was approved cannot be changed in a wrapper")
        self._called = True
        merged = outer if signal is None else AbortSignal.any(outer, signal.named(wrapper_source(hook_name(wrapper))))
        inside = _Ring(self._state, self._services, self._wrappers[1:], self._dispatch, self._provisional)
        try:
            await inside.go_on(merged)
        except Exception as error:  # wrappers' own errors are taken where they are raised, so this one is ours
            self._broken = error
            raise
        finally:
            self._inside_over.set()
            self._hurry()
        return self._provisional()

    async def _finish_inside(self) -> None:
        """A wrapper that returned or raised while its `next` still runs: the inside is awaited before anything else is."""
        self._closed = True
        if self._called:
            await wait_through(self._inside_over)
        if self._broken is not None:
            raise self._broken

    def _take_error(self, failed: HookFailed) -> None:
        state, error = self._state, failed.__cause__
        reason = state.signal.reason or state.body_signal.reason or (state.stop.reason if failed.stopped else None)
        if error is not None and reason is not None and is_stop(error, reason):
            if not state.started:
                state.refuse_if_aborted()
            return
        if not self._called and state.refusal is None and not state.started:
            state.refuse(Outcome.FAILED, Code.HOOK_ERROR, failed.error)
            return
        if error is not None and is_a(error, NextMisused) and state.wrapper_error is not None:
            return
        state.wrapper_error = failed.error

    def _take_answer(self, wrapper: Wrapper, answer: Any) -> None:
        state = self._state
        before = self._provisional()
        try:
            reply = _as_reply(state, answer)
        except TypeError as error:
            state.wrapper_error = Error(ErrorKind.HOOK, f"wrapper {hook_name(wrapper)!r} returned {error}")
            return
        if not self._called and not state.started and state.refusal is None:
            state.answered = True
        if isinstance(answer, ToolResult) and answer.run_id != state.run_id:
            state.about_run_id = answer.run_id
            if answer.outcome is not Outcome.SUCCEEDED:
                state.wrapper_error = answer.error or Error(ErrorKind.HOOK, answer.summary())
        elif reply.error is not None and reply.error != before.error:
            state.wrapper_error = reply.error
        # What the body or an inner wrapper had put there is kept, also by a wrapper that made its answer from nothing.
        kept = [value for value in before.follow_up if value not in reply.follow_up]
        state.wrapped = replace(reply, follow_up=(*kept, *reply.follow_up))


def _as_reply(state: ActiveCall, answer: Any) -> Reply:
    """What a wrapper returned, as a reply to put in place of the body's.

    A result of this call keeps all its facts and gives its content only: facts are not a wrapper's to change. The result of
    another call is content too, and the call says whose it was. Raises TypeError for what is no answer.
    """
    if answer is None:
        raise TypeError("nothing; return what next() gave, or a Reply")
    if isinstance(answer, ToolResult):
        answer = Reply(answer.value, answer.content, answer.follow_up, answer.error)
    assert state.registration is not None
    try:
        return state.registration.tool.dump(answer)
    except InvalidOutput as error:
        raise TypeError(f"what is no answer of this tool: {error.message}") from error
