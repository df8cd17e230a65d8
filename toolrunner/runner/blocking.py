"""BlockingRunner: a Runner for programs without async. Its loop runs in a thread of its own.

State: the thread's portal and the runner in it, made on entry. Ctrl-C in the calling thread aborts what it waits for, waits until
that has ended, and is then raised on.
"""

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar, final

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from toolrunner.abort import AbortController, AbortSignal
from toolrunner.calls import ToolCall
from toolrunner.facts import Source
from toolrunner.results import BatchResult, ToolResult

T = TypeVar("T")


class AsyncRunner(Protocol):
    """What a BlockingRunner needs of a Runner (which is made by the row's front, not known here)."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    async def run_batch(
        self, calls: Iterable[ToolCall], *, signal: AbortSignal | None, deps: Any, deadline: float | None
    ) -> BatchResult: ...
    def result(self, run_id: str) -> ToolResult: ...
    def tools_for(self, provider: str) -> list[dict[str, Any]]: ...


@dataclass(frozen=True, slots=True)
class _Raised:
    """What a call raised in the loop's thread."""

    error: BaseException


@final
class _Errand(Generic[T]):
    """One thing to do on the loop's thread: `take` may be put there twice and does it once."""

    def __init__(self, fn: Callable[[], Awaitable[T]]) -> None:
        self._fn = fn
        self._taken = False  # changed on the loop only
        self.outcome: Future[T | _Raised] = Future()

    async def take(self) -> None:
        if self._taken:
            return
        self._taken = True
        try:
            self.outcome.set_result(await self._kept())
        except Exception as error:  # noqa: BLE001 - it is the caller's, in the other thread
            self.outcome.set_exception(error)
        except BaseException as error:  # the loop is being torn down
            self.outcome.set_exception(error)
            raise

    async def _kept(self) -> T | _Raised:
        """A body's KeyboardInterrupt or SystemExit, as a value: raised through the portal it would end loop and runner."""
        try:
            return await self._fn()
        except (Exception, anyio.get_cancelled_exc_class()):
            raise
        except BaseException as error:  # noqa: BLE001 - also a group that holds one
            return _Raised(error)


@final
class BlockingRunner:
    """`with Runner.blocking(tools) as r: r.run("name", {...})`."""

    def __init__(self, make: Callable[[], AsyncRunner], backend: str = "asyncio") -> None:
        self._make = make
        self._backend = backend
        self._stack = contextlib.ExitStack()
        self._portal: BlockingPortal | None = None
        self._runner: AsyncRunner | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal(self._backend))
            self._runner = stack.enter_context(portal.wrap_async_context_manager(portal.call(self._made)))
            self._portal = portal
            self._stack = stack.pop_all()
        return self

    async def _made(self) -> AsyncRunner:
        return self._make()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, trace)

    def run(
        self, name: str | ToolCall, arguments: Mapping[str, Any] | str | None = None, *, signal: AbortSignal | None = None
    ) -> ToolResult:
        """Run one tool and wait for its result; see `Runner.run`."""
        call = name if isinstance(name, ToolCall) else ToolCall(name, arguments if arguments is not None else {})
        return self.run_batch([call], signal=signal)[0]

    def run_batch(
        self,
        calls: Iterable[ToolCall],
        *,
        signal: AbortSignal | None = None,
        deps: Any = None,
        deadline: float | None = None,
    ) -> BatchResult:
        """Run calls and wait for all results; see `Runner.run_batch`."""
        runner = self._runner
        assert runner is not None, "use it in a with block"
        ours = AbortController(source=Source.HOST)
        merged = AbortSignal.any(*([signal] if signal is not None else []), ours.signal)
        return self._call(lambda: runner.run_batch(calls, signal=merged, deps=deps, deadline=deadline), ours)

    def result(self, run_id: str) -> ToolResult:
        """The result of an earlier call; see `Runner.result`."""
        assert self._runner is not None, "use it in a with block"
        return self._runner.result(run_id)

    def tools_for(self, provider: str) -> list[dict[str, Any]]:
        """The tool list to send to a provider; see `Runner.tools_for`."""
        assert self._runner is not None, "use it in a with block"
        return self._runner.tools_for(provider)

    def _call(self, fn: Callable[[], Awaitable[T]], ours: AbortController) -> T:
        assert self._portal is not None, "use it in a with block"
        errand = _Errand(fn)
        try:
            self._portal.start_task_soon(errand.take)
            outcome = errand.outcome.result()
        except KeyboardInterrupt:
            ours.abort("KeyboardInterrupt")
            # It may have come before the loop had the errand or long after, which nobody can tell here. Put once more it is taken
            # once, and what is taken only now starts nothing.
            self._portal.start_task_soon(errand.take)
            # What was started is awaited; its own errors give way to the interrupt. A second Ctrl-C stops waiting here.
            errand.outcome.exception()
            raise
        if isinstance(outcome, _Raised):
            raise outcome.error
        return outcome
