"""In-process bodies: entering one at the moment of action, telling it to stop, and reading how it ended.

An async body runs in the task that calls `run`, a sync body in a thread of the runner. Both enter through `gate`, which checks
and marks the call as started in the same stretch without an await as the body's first step.
"""

import contextvars
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import anyio

from toolrunner.abort import AbortError
from toolrunner.facts import AbortReason, ProcessIdentity, Source
from toolrunner.loops import poster
from toolrunner.pipeline.ends import BodyEnd
from toolrunner.pipeline.foreign import error_fact, interrupt_in, is_a, members, text_of, type_name
from toolrunner.pipeline.state import ActiveCall
from toolrunner.pipeline.threads import WorkerThreads
from toolrunner.results import Code, Ended, Error, ErrorKind, Outcome
from toolrunner.tasks import OwnedTask, wait_through
from toolrunner.tools import InvalidOutput

Gate = Callable[[], bool]
"""Asks, synchronously, whether the body may be entered, and marks the call as started if so."""

Arguments = Callable[[], dict[str, Any]]
"""Builds the keyword arguments of the body's function, once its signal is known."""


class Body(ABC):
    """One body of one attempt."""

    @property
    def identity(self) -> ProcessIdentity | None:
        """The process that waits to be released as this body; None for a body in this process."""
        return None

    @abstractmethod
    async def run(self, gate: Gate, task: OwnedTask) -> BodyEnd | None:
        """Enter the body if `gate` lets it, and wait for its end, unconditionally. None = never entered."""

    @abstractmethod
    def deliver(self) -> None:
        """Tell the running body to stop, once. Sync; called on the loop while `run` is under way."""

    @abstractmethod
    async def discard(self) -> None:
        """Let go of what was made ready for a body that will not be entered."""


@final
class AsyncBody(Body):
    """`await fn(...)` in the body's own task, told to stop by one cancel of that task."""

    def __init__(self, state: ActiveCall, arguments: Arguments) -> None:
        self._state = state
        self._arguments = arguments
        self._task: OwnedTask | None = None
        self._told = False

    async def run(self, gate: Gate, task: OwnedTask) -> BodyEnd | None:
        assert self._state.registration is not None
        tool = self._state.registration.tool
        kwargs = self._arguments()
        if not gate():
            return None
        # No await from the gate to the first step of the body.
        self._task = task
        delivered = False
        try:
            returned = await tool.fn(**kwargs)
        except BaseException as error:  # noqa: BLE001 - the body's own; whatever it raised is its end
            delivered = is_a(error, anyio.get_cancelled_exc_class())
            if task.was_cancelled_from_outside(error, told=self._told):
                torn_down(self._state)
            return raised(self._state, error, saw_abort=self._told)
        finally:
            self._task = None
            if self._told:
                await task.absorb(delivered=delivered)
        return returned_end(self._state, returned, saw_abort=self._told or self._state.saw_abort)

    def deliver(self) -> None:
        if self._task is not None and not self._told:
            # A shielded effect, or clean-up, holds the cancel back: a native cancel would go through its shield.
            self._state.ledger.after_shields(self._cancel)

    async def discard(self) -> None:
        """Nothing was made ready."""

    def _cancel(self) -> None:
        if self._task is not None and not self._told:
            self._told = True
            self._task.cancel()


@final
class ThreadBody(Body):
    """`fn(...)` in a thread. It can only be told through `ctx.signal`."""

    def __init__(self, state: ActiveCall, arguments: Arguments, threads: WorkerThreads) -> None:
        self._state = state
        self._arguments = arguments
        self._threads = threads

    async def run(self, gate: Gate, task: OwnedTask) -> BodyEnd | None:  # noqa: ARG002 - a thread has no task to cancel
        box: list[BodyEnd | BaseException | None] = []
        done = anyio.Event()
        kwargs = self._arguments()
        context = contextvars.copy_context()  # the body's own, in a copy: one Context can be entered by one thread at a time
        try:
            self._threads.start(lambda: box.append(context.run(self._call, gate, kwargs)), poster(), done.set)
        except RuntimeError as error:  # the system gives no more threads; another call may find one
            self._state.refuse(Outcome.REJECTED, Code.SPAWN_REFUSED, Error(ErrorKind.LIMIT, str(error)))
            return None
        await wait_through(done, lambda: torn_down(self._state))
        end = box[0]
        # Told apart here and not in the thread, which has no loop to say what a cancellation is.
        return raised(self._state, end, saw_abort=self._state.saw_abort) if isinstance(end, BaseException) else end

    def _call(self, gate: Gate, kwargs: dict[str, Any]) -> BodyEnd | BaseException | None:
        assert self._state.registration is not None
        if not gate():
            return None
        try:
            returned = self._state.registration.tool.fn(**kwargs)
        except BaseException as error:  # noqa: BLE001 - the body's own; whatever it raised is its end
            return error
        return returned_end(self._state, returned, saw_abort=self._state.saw_abort)

    def deliver(self) -> None:
        """Nothing more to do: the merged signal is what the body reads."""

    async def discard(self) -> None:
        """Nothing was made ready."""


TORN_DOWN = AbortReason(Source.SHUTDOWN, "the event loop was torn down")


def torn_down(state: ActiveCall) -> None:
    """The task of a body was cancelled, and not by us: nobody but the loop's own tear-down reaches it."""
    state.stop_batch(TORN_DOWN)


def returned_end(state: ActiveCall, returned: object, *, saw_abort: bool) -> BodyEnd:
    """The end of a body that returned: its reply, if that is valid."""
    assert state.registration is not None
    try:
        reply = state.registration.tool.dump(returned)
    except InvalidOutput as error:
        return _invalid(error.message, saw_abort=saw_abort)
    except Exception as error:  # noqa: BLE001 - the value's own code, asked only what it is
        return _invalid(f"returned what cannot be read: {type_name(error)}: {text_of(error)}", saw_abort=saw_abort)
    code = Code.TOOL_ERROR if reply.error is not None else None
    return BodyEnd(Ended.RETURNED, reply, reply.error, code, saw_abort=saw_abort)


def _invalid(message: str, *, saw_abort: bool) -> BodyEnd:
    error = Error(ErrorKind.INVALID_OUTPUT, message)
    return BodyEnd(Ended.RETURNED, error=error, code=Code.INVALID_OUTPUT, saw_abort=saw_abort)


def raised(state: ActiveCall, error: BaseException, *, saw_abort: bool) -> BodyEnd:
    """The end of a body that raised: stopped if it ended by the stop it was told of, else its own error."""
    reason = state.body_signal.reason
    if reason is not None and is_stop(error, reason):
        return BodyEnd(Ended.STOPPED, saw_abort=True)
    fatal = error if interrupt_in(error) is not None else None
    return BodyEnd(Ended.RAISED, error=error_fact(error), code=Code.TOOL_ERROR, saw_abort=saw_abort, fatal=fatal)


def is_stop(error: BaseException, reason: AbortReason) -> bool:
    """Whether an exception is just the stop coming back: a cancellation, `AbortError`, the bare reason, or a group of these."""
    inside = members(error)
    if inside:
        return all(is_stop(inner, reason) for inner in inside)
    if is_a(error, AbortError, anyio.get_cancelled_exc_class()):
        return True
    # A body that throws the raw reason on, wrapped in nothing but the plainest exception there is.
    return type(error) is Exception and error.args in ((reason,), (reason.text,), (None,), ())
