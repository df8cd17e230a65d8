"""Runner: runs tools, stops them when asked, and says what happened.

State: whether it is open, and its parts, made when it is entered. It belongs to one event loop and one process; only `abort` on a
controller may come from elsewhere. Calls run in tasks of the runner's own, so nothing that cancels a caller reaches a body.
"""

import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, final

from toolrunner.abort import AbortController, AbortSignal
from toolrunner.calls import ToolCall
from toolrunner.errors import ConfigError, NestedClose, NestedRun, RunnerClosed
from toolrunner.facts import Source
from toolrunner.loops import native_loop
from toolrunner.memory import MemoryJournal
from toolrunner.pipeline.bodies import TORN_DOWN
from toolrunner.pipeline.nesting import inside_body_of
from toolrunner.pipeline.reconcile import reconcile_as
from toolrunner.pipeline.services import Services
from toolrunner.policy import Approver, Policy
from toolrunner.process import JobTable, Processes, Supervisor
from toolrunner.records import Journal, Observer
from toolrunner.recovery import Recovered
from toolrunner.registry import ChildCalls
from toolrunner.results import BatchResult, ToolResult
from toolrunner.runner.answering import Answering
from toolrunner.runner.assembly import assemble
from toolrunner.runner.batch import Batch
from toolrunner.runner.blocking import BlockingRunner
from toolrunner.runner.closing import close_runner
from toolrunner.runner.containing import Containing
from toolrunner.runner.events import EventBuffer
from toolrunner.runner.lasting import open_lasting
from toolrunner.runner.settings import DEFAULT_PARALLEL, Settings, require_deadline, require_limit
from toolrunner.runner.shelf import Shelf
from toolrunner.runner.submission import Submission
from toolrunner.runner.waiting import OnHostCancel
from toolrunner.tasks import TaskRoot
from toolrunner.tools import AnyTool, Tools


@final
class Runner(Answering):
    """The front door: `async with Runner(tools) as runner: await runner.run("name", {...})`.

    Args:
        tools: tools, toolsets and plain functions (which are wrapped by `@tool`).
        deps: handed to every body as `ctx.deps`; a batch may bring its own.
        policy: who may run what; None allows everything, and says so in every `call/decided` record.
        approver: who is asked when the policy or a hook asks; without one, an ask is a denial.
        journal: where records are kept; in memory by default. One on disk is recovered when the runner is entered.
        session: the name of a session, whose journal on disk is opened, or made, when the runner is entered.
        max_parallel: parallel-safe calls of one batch at once.
        hook_timeout: seconds for each hook; then the call fails closed.
        approval_timeout: seconds for each question; then the call is denied.
        settle_timeout: seconds after a stop was delivered until an in-process body that runs on is published as still running.
            None, the default, waits for it.
        on_host_cancel: what the cancellation of the awaiting task means: "settle" or "detach".
        host_cancel_wait: seconds that "settle" waits for started calls.
        kill_after: seconds between SIGTERM and SIGKILL, for tools that do not say.
        dedupe_by_arguments: equal calls of the session are answered from the first one.
        max_threads, max_processes: bodies of each kind at once, over all batches.
        spill_dir: a private folder for the output of commands past their limit, made when needed and left to whoever named it;
            without one such output is only counted.
        sandbox: what contains every process of a call: a profile by name or file, or a `Sandbox`. Python bodies of this process
            cannot be contained.
        supervisor: how processes are supervised; by default the best that this host can do.

    Raises:
        DuplicateTool, ToolDefinitionError, ConfigError, ProfileError: before anything runs. JournalError when it is entered.
    """

    def __init__(  # noqa: PLR0913 - the front door: each is a setting people look for by name
        self,
        tools: Iterable[Tools] = (),
        *,
        deps: Any = None,
        policy: Policy | None = None,
        approver: Approver | None = None,
        journal: Journal | None = None,
        session: str | None = None,
        max_parallel: int = DEFAULT_PARALLEL,
        hook_timeout: float = 30.0,
        approval_timeout: float = 300.0,
        settle_timeout: float | None = None,
        on_host_cancel: OnHostCancel | str = OnHostCancel.SETTLE,
        host_cancel_wait: float = 30.0,
        kill_after: float = 2.0,
        dedupe_by_arguments: bool = False,
        max_threads: int = 32,
        max_processes: int | None = None,
        spill_dir: str | Path | None = None,
        sandbox: Containing = None,
        supervisor: Callable[[], Processes] = Supervisor,
    ) -> None:
        self._settings = Settings(
            deps=deps, policy=policy, approver=approver, max_parallel=max_parallel, hook_timeout=hook_timeout,
            approval_timeout=approval_timeout, settle_timeout=settle_timeout, on_host_cancel=on_host_cancel,
            host_cancel_wait=host_cancel_wait, kill_after=kill_after, dedupe_by_arguments=dedupe_by_arguments,
            max_threads=max_threads, max_processes=max_processes, spill_dir=spill_dir, sandbox=sandbox,
            supervisor=supervisor,
        )  # fmt: skip
        if journal is not None and session is not None:
            raise ConfigError("session", session, "None where a journal is given")
        super().__init__(tools, journal if journal is not None else MemoryJournal())
        self._session = session
        self._shelf = Shelf()
        self._supervisor: Processes | None = None
        self._is_entering = False
        """Its journal is being recovered, which has waits; from there on to the end of the entry there is none."""
        self._shutdown = AbortController(source=Source.SHUTDOWN)
        self._pid = os.getpid()

    # Open and close.

    async def __aenter__(self) -> Self:
        if self._services is not None or self._is_entering:
            raise RunnerClosed("it was entered before; make a new one")
        self._loop = native_loop()
        self._pid = os.getpid()
        self._is_entering = True
        try:
            self._lasting = await open_lasting(self._hub, self._session)
        finally:
            self._is_entering = False
        with self._lasting.or_let_go():
            self._supervisor = self._settings.processes()
            children = ChildCalls(
                self._parts, keep=self._shelf.put, settled=self._shelf.settled, adopt=self._adopt, detach=self._detach
            )
            self._services = services = assemble(
                catalogue=self._catalogue,
                hooks=self._hooks,
                journal=self._journal,
                hub=self._hub,
                root=TaskRoot(lambda: self._shutdown.abort(TORN_DOWN.text)),
                settings=self._settings,
                prepare_process=self._supervisor.prepare,
                run_child=children.run,
                past_keys=self._lasting.keys,
            )
            self._submission = Submission(services, self._settings, self._shelf, self._hub, self._stops, self._shutdown.signal)
            self._lasting.begin(services, self._submission)
        self._closed = None
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    async def aclose(self, limit: float | None = None) -> None:
        """Take no more calls, abort those under way with source `shutdown`, and wait until all have ended.

        After `limit` seconds in-process bodies that run on are published as still running; they keep what they hold.
        Raises `NestedClose` in a body of this runner, `ConfigError` for a limit that is none.
        """
        require_limit(limit)
        if self._services is None or self._pid != os.getpid():
            return
        if inside_body_of(self._services):
            raise NestedClose
        self._closed = "it is closed"
        self._shutdown.abort("the runner was closed")
        self._services.jobs.close()
        self._lasting.close()
        await close_runner(self._services, self._supervisor, self._shelf, limit, self._lasting.let_go)

    def _knows(self, tool: AnyTool) -> None:
        if self._services is not None:
            self._lasting.know(self._services, tool)

    def _parts(self) -> Services:
        if self._services is None:
            raise RunnerClosed(self._closed or "it was not entered")
        return self._services

    def _open_services(self) -> Services:
        """The parts, if calls may be made here. Raises `RunnerClosed` or `NestedRun`, which say why not."""
        if self._pid != os.getpid():
            raise RunnerClosed("it was inherited by a forked process; make a new one there")
        if self._closed is not None or self._services is None:
            raise RunnerClosed(self._closed or "it was not entered")
        if native_loop() is not self._loop:
            raise RunnerClosed("it belongs to another event loop")
        if inside_body_of(self._services):
            raise NestedRun
        return self._services

    # Calls.

    async def run(
        self, name: str | ToolCall, arguments: Mapping[str, Any] | str | None = None, *, signal: AbortSignal | None = None
    ) -> ToolResult:
        """Run one tool and wait for its result. A result is a value: nothing that the tool does is raised.

        Raises:
            RunnerClosed, NestedRun: misuse. KeyboardInterrupt, SystemExit: a body raised it; its result is kept.
        """
        call = name if isinstance(name, ToolCall) else ToolCall(name, arguments if arguments is not None else {})
        self._open_services()
        return await self._submission.single(call, signal, None)

    async def run_batch(
        self,
        calls: Iterable[ToolCall],
        *,
        signal: AbortSignal | None = None,
        deps: Any = None,
        deadline: float | None = None,
        on_event: Observer | None = None,
    ) -> BatchResult:
        """Run calls and wait for all results, in the order given. `deadline` in seconds counts from now."""
        return await self._start(calls, signal, deps, deadline, on_event, EventBuffer(is_read=False)).results()

    async def stream(
        self, calls: Iterable[ToolCall], *, signal: AbortSignal | None = None, deps: Any = None, deadline: float | None = None
    ) -> AsyncGenerator[ToolResult]:
        """Run calls and yield each result as soon as it is committed, in the order of the calls."""
        batch = self._start(calls, signal, deps, deadline, None, EventBuffer(is_read=False))
        # Closed with this one: a generator that is left to the collector is closed at some other time, in some other task.
        async with contextlib.aclosing(batch.stream()) as results:
            async for result in results:
                yield result

    def start_batch(
        self,
        calls: Iterable[ToolCall],
        *,
        signal: AbortSignal | None = None,
        deps: Any = None,
        deadline: float | None = None,
        on_event: Observer | None = None,
    ) -> Batch:
        """Start calls without waiting. They run to their end whether or not anybody waits."""
        return self._start(calls, signal, deps, deadline, on_event, EventBuffer())

    def _start(
        self,
        calls: Iterable[ToolCall],
        signal: AbortSignal | None,
        deps: Any,
        deadline: float | None,
        observer: Observer | None,
        events: EventBuffer,
    ) -> Batch:
        self._open_services()
        require_deadline(deadline)
        return self._submission.batch(list(calls), signal, deps, deadline, observer, events)

    def result(self, run_id: str) -> ToolResult:
        """The result of an earlier call, also of one whose waiter was cancelled; with a journal on disk, of the whole session.

        Raises `NotSettled`, `UnknownRun`, and `JournalError` when the journal cannot be read.
        """
        return self._lasting.result(run_id, self._shelf)

    async def wait(self, run_id: str) -> ToolResult:
        """Wait until a call has its result, also one that waits for an approval since before a restart.

        Raises `UnknownRun`; `RunnerClosed` when the runner is closed and the call still waits for its approval.
        """
        return await self._lasting.wait(run_id, self._shelf)

    async def reconcile(self, run_id: str, as_: Literal["completed", "none"], note: str = "") -> bool:
        """Your word on a call whose effects are not known: it took effect, or it did not. Frees what was held back for it.

        True if it was in doubt here. Raises `ConfigError` for another word, or when it could not be written down.
        """
        services = self._open_services()
        known = await reconcile_as(services, run_id, as_, note)
        services.keys.clear_up(run_id, completed=as_ == "completed")
        return known

    @property
    def recovery(self) -> Recovered | None:
        """What was found and written when the journal was opened: calls of earlier owners, and processes that outlived them."""
        return self._lasting.recovered

    @property
    def jobs(self) -> JobTable:
        """Processes that outlive their calls: `list()`, `get(id)`, `await start(plan)`. They are ended when the runner closes."""
        return self._parts().jobs

    @staticmethod
    def blocking(tools: Iterable[Tools] = (), *, backend: str = "asyncio", **settings: Any) -> BlockingRunner:
        """The same without async: `with Runner.blocking(tools) as r: r.run_batch(...)`. `settings` are those of `Runner`."""
        return BlockingRunner(lambda: Runner(tools, **settings), backend)
