"""The event loop's own entry points that anyio does not offer: call from any thread, a timer without a task, a detached task.

No state. The backend is told by what the loop's token can do, so neither asyncio nor trio is imported here.
"""

import contextvars
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar, final

import anyio
from anyio.lowlevel import current_token

from toolrunner.errors import ConfigError

_T = TypeVar("_T")


class Post(Protocol):
    """Runs a callback on one loop, soon. From any thread, signal handler or finalizer; RuntimeError once the loop closed."""

    def __call__(self, fn: Callable[[], object], /) -> object: ...


class NativeEvent(Protocol):
    """An event of the running library itself. `anyio.Event` is one of these in a wrapping that costs more than the event."""

    def set(self) -> object:
        """Wake all who wait."""
        ...

    async def wait(self) -> object:
        """Wait until it is set."""
        ...


class LoopCall(Protocol):
    """Runs `fn` on one loop, from another thread, and blocks until it returned; what it raises is raised here."""

    def __call__(self, fn: Callable[[], _T], /) -> _T: ...


def native_loop() -> Any:
    """The running asyncio event loop, or trio's token."""
    asyncio = sys.modules.get("asyncio")
    loop = asyncio._get_running_loop() if asyncio is not None else None  # noqa: SLF001  the one that does not raise
    # The short way, taken half a dozen times per call. Not without a task: trio may be the guest of an asyncio loop's callbacks.
    # Nor inside a task of trio's: a task of asyncio may have called `trio.run`, and is the current one as long as that lasts.
    if asyncio is not None and loop is not None and not _trio_says("in_trio_task") and asyncio.current_task(loop) is not None:
        return loop
    if loop is not None and not _trio_says("in_trio_run"):  # a callback of asyncio's own
        return loop
    try:
        return current_token().native_token
    except (RuntimeError, anyio.NoEventLoopError) as error:
        # A callback that another thread posted to asyncio runs in no task and in that thread's context, which names no library.
        if loop is None:
            raise ConfigError("the event loop", None, "a running asyncio or trio loop") from error
        return loop


def _trio_says(question: str) -> bool:
    """What trio answers; no, as long as it is not there, or another thread is only just importing it."""
    ask = getattr(sys.modules.get("trio.lowlevel"), question, None)
    return ask is not None and ask()


def native_event() -> NativeEvent:
    """An event of the library that runs here."""
    event: NativeEvent = sys.modules["asyncio" if hasattr(native_loop(), "call_soon") else "trio"].Event()
    return event


def poster() -> Post:
    """The running loop's way to take a callback from outside. On asyncio it runs in a copy of the current context."""
    native = native_loop()
    if hasattr(native, "call_soon_threadsafe"):
        return _AsyncioPost(native)
    post: Post = native.run_sync_soon
    return post


@final
class _AsyncioPost:
    """`Post` for one asyncio loop. Never changed."""

    __slots__ = ("_context", "_current_task", "_loop", "_running_loop")

    def __init__(self, loop: Any) -> None:
        asyncio = sys.modules["asyncio"]
        self._loop = loop
        self._context = _callback_context()
        # Kept, because a finalizer may post when the interpreter is so far gone that no module is found any more.
        self._running_loop = asyncio._get_running_loop  # noqa: SLF001 - as in `native_loop`
        self._current_task = asyncio.current_task

    def __call__(self, fn: Callable[[], object], /) -> None:
        loop = self._loop
        # Inside a step of one of its tasks a loop need not be woken, which is a write to a socket: it is between two looks at
        # what is ready, also for a signal handler or finalizer that interrupted the step. Anywhere else it may be asleep, or
        # about to be. A loop that nest_asyncio has patched may be asleep inside a task's step.
        inside = self._running_loop() is loop and self._current_task(loop) is not None
        if inside and not getattr(loop, "_nest_patched", False):
            loop.call_soon(fn, context=self._context)
        else:
            loop.call_soon_threadsafe(fn, context=self._context)


def _callback_context() -> contextvars.Context:
    """A context in which anyio works in a callback of an asyncio loop.

    By default it would be that of whoever posts, another thread's say. And sniffio (which comes with trio), asked by anyio, knows
    asyncio by its current task: a callback has none, and under a bare `asyncio.run` nothing else names the library.
    """
    context = contextvars.copy_context()
    sniffio = sys.modules.get("sniffio")
    if sniffio is not None and sniffio.current_async_library_cvar.get() != "asyncio":  # `anyio.run` has named it mostly
        context.run(sniffio.current_async_library_cvar.set, "asyncio")
    return context


def loop_caller(post: Post) -> LoopCall:
    """A blocking call into a loop, for bodies in threads. What it raises on the loop is raised in the thread."""

    def call(fn: Callable[[], _T]) -> _T:
        future: Future[_T] = Future()

        def run() -> None:
            try:
                future.set_result(fn())
            except BaseException as error:  # noqa: BLE001 - it belongs to the thread that waits
                future.set_exception(error)

        post(run)
        return future.result()

    return call


def call_soon(fn: Callable[[], object]) -> None:
    """Run `fn` on this loop after all that is ready to run now; to be called on the loop, where nothing need be woken."""
    native = native_loop()
    if hasattr(native, "call_soon"):
        native.call_soon(fn, context=_callback_context())
    else:
        native.run_sync_soon(fn)


def call_later(seconds: float, fn: Callable[[], object]) -> Callable[[], None]:
    """Run `fn` on this loop after `seconds` of the loop's clock; returns the way to take it back."""
    native = native_loop()
    if hasattr(native, "call_later"):
        handle = native.call_later(seconds, fn, context=_callback_context())
        cancel: Callable[[], None] = handle.cancel
        return cancel
    return _trio_timer(seconds, fn)


def _trio_timer(seconds: float, fn: Callable[[], object]) -> Callable[[], None]:
    trio: Any = sys.modules["trio"]  # running under it, so it is loaded; it is no dependency of ours
    scope = trio.CancelScope()

    async def wait_then_call() -> None:
        with scope:
            await trio.sleep(seconds)
            # Taken back in the very tick in which the sleep ended: the cancel comes too late to raise, so look.
            if not scope.cancel_called:
                fn()

    trio.lowlevel.spawn_system_task(wait_then_call)
    cancel: Callable[[], None] = scope.cancel
    return cancel


_detached: set[Any] = set()
"""Strong references to detached asyncio tasks; the loop itself holds weak ones only."""


def spawn_detached(
    fn: Callable[[], Coroutine[Any, Any, None]],
    name: str,
    context: contextvars.Context,
    *,
    torn_down: Callable[[], object] = lambda: None,
) -> None:
    """Start a task in `context` that belongs to no scope and no task of the caller. `fn` must not let anything out.

    trio: a system task (ended when the run's main task ends); asyncio: a plain task of the loop. There a task that is cancelled
    before its first step never takes it, and all who wait for it would wait for ever. Only the loop's own tear-down can do that:
    `torn_down` is called then, and `fn` is started all the same.
    """
    native = native_loop()

    async def live() -> None:
        # Done for a task that took a step: a callback at its end would be another turn of the loop, for every call.
        task.remove_done_callback(never_entered)
        try:
            await fn()
        finally:
            _detached.discard(task)

    def never_entered(_: object) -> None:
        _detached.discard(task)
        torn_down()
        spawn_detached(fn, name, context, torn_down=torn_down)

    if hasattr(native, "create_task"):
        # Not loop.create_task: an eager task factory would run the first step inside this call, before the caller has the task.
        task = sys.modules["asyncio"].Task(live(), loop=native, name=name, context=context)
        _detached.add(task)
        task.add_done_callback(never_entered)
    else:
        sys.modules["trio"].lowlevel.spawn_system_task(fn, name=name, context=context)


def current_native_task() -> Any:
    """The running task in its backend's own type."""
    asyncio = sys.modules.get("asyncio")
    loop = asyncio._get_running_loop() if asyncio is not None else None  # noqa: SLF001  as in `native_loop`
    inside = loop is not None and not _trio_says("in_trio_task")  # in the order of `native_loop`
    task = asyncio.current_task(loop) if asyncio is not None and inside else None
    return task if task is not None else sys.modules["trio"].lowlevel.current_task()
