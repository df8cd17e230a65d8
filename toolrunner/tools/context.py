"""ToolContext: what a running body may ask of the runner, and the protocol by which the runner answers.

State: none of its own; every request is forwarded to the `ContextServices` of the call, which the pipeline implements.
"""

from collections.abc import Awaitable, Coroutine, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar, final

from pydantic import JsonValue

from toolrunner.abort import AbortSignal
from toolrunner.calls import ToolCall
from toolrunner.effects import Undo, UndoFunction
from toolrunner.errors import ToolrunnerError
from toolrunner.process import Job
from toolrunner.results import ToolResult
from toolrunner.tools.bodies import BodyKind
from toolrunner.tools.command import Command

Deps = TypeVar("Deps", covariant=True)  # noqa: PLC0105  # users read this name in the design and in their type checker


class AsyncOnly(ToolrunnerError):
    """A sync body used a part of its context that has to be awaited. What it may use is everything else."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} has to be awaited, so only an async tool can use it; declare the tool with `async def`")
        self.what = what


class Effect(Protocol):
    """One declared effect, while its act is under way."""

    receipt: str | None
    """Whatever the other side gave as proof (an id, a revision); kept with the record of the effect."""

    def not_applied(self) -> None:
        """Say that the act is known not to have happened; without this, a block left by an exception counts as unknown."""
        ...


class EffectScope(Protocol):
    """The block around one act: *planned* is durable before it is entered, *applied* is recorded when it is left normally.

    `async with` in async bodies, `with` in sync bodies, from their thread.
    """

    def __enter__(self) -> Effect: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None: ...
    async def __aenter__(self) -> Effect: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None: ...


class ContextServices(Protocol):
    """What the runner does for a body; implemented by the pipeline, one object per call.

    All but `run` and `cleanup` may be called from the body's own thread (sync bodies) and must not block for long.
    """

    def effect(self, kind: str, target: str, shield: bool, undo: Undo | UndoFunction | None) -> EffectScope:
        """Declare an effect; see `ToolContext.effect`."""
        ...

    def run(self, name: str, arguments: Mapping[str, Any]) -> Awaitable[ToolResult]:
        """Make a child call; see `ToolContext.run`."""
        ...

    def output(self, text: str) -> None:
        """Publish a chunk of output."""
        ...

    def progress(self, message: str, done: float | None, total: float | None) -> None:
        """Publish how far the body is."""
        ...

    def follow_up(self, value: JsonValue) -> None:
        """Append to the result's `follow_up`."""
        ...

    def cleanup(self) -> AbstractContextManager[object]:
        """Hold a cancel back while the block runs.

        It is the runner's, because an anyio shield does not hold a native asyncio cancel: only who sends it can wait with it.
        """
        ...


class NoJobs(ToolrunnerError):
    """This body can have no jobs."""

    def __init__(self) -> None:
        super().__init__('ctx.jobs is not there in a worker of its own (isolation="process"); start jobs from a tool in the host')


class Jobs(Protocol):
    """The jobs of the runner, as one call may use them. A call that is stopped takes the jobs that it started with it."""

    async def start(self, command: Command, what: str = "", *, read_only: bool = False) -> Job:
        """Start a job: listed until it is over, and ended when the runner closes. `Stdin.OPEN` lets it be written to.

        `what` names it for people; default: the program. `read_only`: it changes no file, so what calls that are watched
        changed meanwhile is still theirs alone.

        Raises:
            SpawnRefused: nothing was released, and why.
            JobNotStarted: this call is being stopped, or over. Nothing was released.
        """
        ...

    def list(self) -> tuple[Job, ...]:
        """The living jobs of the runner, oldest first."""
        ...

    def get(self, job_id: str) -> Job:
        """One of them, or one that has ended. Raises UnknownJob."""
        ...


# No slots: CPython's frozen slotted dataclasses cannot be built as `ToolContext[Deps](...)`, which tests of tools write
# (their __setattr__ meets __orig_class__ on a class that is not theirs any more).
@final
@dataclass(frozen=True, kw_only=True)
class ToolContext(Generic[Deps]):
    """Given to the parameter that is annotated with `ToolContext` or `ToolContext[Deps]`; the model never sees that parameter.

    `signal` is the body's own: the caller's, every wrapper's and the deadline's, merged. `deps` is what was handed to the
    runner or the batch. `call` carries the frozen arguments. `attempt` counts from 1. `kind` is where this body runs.
    """

    signal: AbortSignal
    deps: Deps
    call: ToolCall
    run_id: str
    attempt: int = 1
    kind: BodyKind = BodyKind.ASYNC
    services: ContextServices = field(repr=False)
    call_jobs: Jobs | None = field(default=None, repr=False)
    """What `jobs` gives; None where no jobs can be had."""

    def effect(self, kind: str, target: str, *, undo: Undo | UndoFunction | None = None, shield: bool = False) -> EffectScope:
        """Record a change outside the call's own memory: `async with ctx.effect("http", url) as e: ...; e.receipt = id`.

        `kind` is a word of the tool's own ("file", "http", "sql"), `target` says what is changed. With `shield=True` a cancel is
        held back until the block is over, so that the act is not cut in half. Left by an exception or a cancel the effect counts
        as unknown, unless `e.not_applied()` was called.

        `undo` takes the change back: a function that is given the effect (`kind`, `target`, `receipt`), or an `Undo` that says
        more about it. It runs, latest act first, when this call is stopped and the tool says `compensate="on_abort"`; a call
        that made this one with `ctx.run`, and says so, undoes it with its own. A coroutine function runs in a task, any other
        in a thread; `ctx` itself is of no use there, since the body is over. It returns when the change is gone, raises when it
        is not or may not be, and calls `e.not_applied()` first if it is known to have done nothing.
        """
        return self.services.effect(kind, target, shield, undo)

    def run(self, name: str, arguments: Mapping[str, Any] | None = None) -> Coroutine[Any, Any, ToolResult]:
        """Call another tool of the same runner and wait for its result: `await ctx.run("read", {"path": p})`.

        The child has this call's signal and locks, and this call does not end before it does.

        Raises:
            AsyncOnly: in a sync body, at once and not when awaited, because nobody there could await it.
        """
        if self.kind is not BodyKind.ASYNC:
            raise AsyncOnly("ctx.run")
        return self._run(name, {} if arguments is None else arguments)

    async def _run(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        return await self.services.run(name, arguments)

    @property
    def jobs(self) -> Jobs:
        """Processes that may outlive this call: `job = await ctx.jobs.start(Command(["npm", "run", "dev"]))`.

        Raises:
            AsyncOnly: in a sync body.
            NoJobs: in a worker of its own (`isolation="process"`), which could not own one.
        """
        if self.kind is not BodyKind.ASYNC:
            raise AsyncOnly("ctx.jobs")
        if self.call_jobs is None:
            raise NoJobs
        return self.call_jobs

    def output(self, text: str) -> None:
        """Show a chunk of output while the body runs. It is not part of the result, and may be dropped for slow observers."""
        self.services.output(text)

    def progress(self, message: str = "", done: float | None = None, total: float | None = None) -> None:
        """Say how far the body is: `done` of `total`, in units of the tool's own."""
        self.services.progress(message, done, total)

    def follow_up(self, value: JsonValue) -> None:
        """Append a value for the program around the model to `ToolResult.follow_up`. Kept when the call is aborted."""
        self.services.follow_up(value)

    def cleanup(self) -> AbstractContextManager[object]:
        """Hold a cancel back for clean-up that awaits: `finally: with ctx.cleanup(): await connection.aclose()`.

        The runner waits for the block as it waits for the body, so bound what may hang in it.

        Raises:
            AsyncOnly: in a sync body, which is never cancelled and needs no such block.
        """
        if self.kind is not BodyKind.ASYNC:
            raise AsyncOnly("ctx.cleanup")
        return self.services.cleanup()
