"""FakeSupervisor and FakeProcess: processes without processes, for the logic around them: `Runner(supervisor=fake.made)`.

State: the processes that were prepared, each with how far it got. Nothing is forked, and clocks are the loop's own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Self, final

import anyio
import anyio.lowlevel

from toolrunner.errors import RunnerClosed
from toolrunner.facts import Containment, Process, ProcessIdentity
from toolrunner.loops import call_later
from toolrunner.process import EndCause, LaunchPlan, Observer, ProcessEnd, Sink, SpawnError, SpawnRefused, WindowSize
from toolrunner.process.ending import SpawnErrorKind
from toolrunner.records import now

FIRST_PID = 4_000_000_000
"""No kernel gives such a number, so a fake is never confused with a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeCommand:
    """What a fake process does once it is released.

    It ends by itself with `exit_code`, or, when that is None, only when the test calls `exit` or somebody stops it. With
    `ignores_term` it takes SIGKILL to stop it. `refused` keeps it from being prepared; `spawn_error` lets its exec fail.
    """

    exit_code: int | None = 0
    stdout: str = ""
    ignores_term: bool = False
    refused: SpawnError | None = None
    spawn_error: SpawnError | None = None


@final
class FakeProcess:
    """One process between its preparation and its end."""

    def __init__(self, plan: LaunchPlan, command: FakeCommand, pid: int, on_output: Observer | None) -> None:
        self.plan = plan
        self.command = command
        self.pid = pid
        self._on_output = on_output
        self._over = anyio.Event()
        self._end: ProcessEnd | None = None
        self._timers: list[Callable[[], None]] = []
        self._stop_requested_at: datetime | None = None
        self._cause = EndCause.STOPPED
        self.signals: list[str] = []
        """The signals it got, in order."""
        self.released = False
        """Whether it was let through its gate; ground truth for `started`."""
        self.abandoned = False
        self.written = b""
        """What it was given on stdin through `write`."""
        self.sizes: list[WindowSize] = []

    @property
    def identity(self) -> ProcessIdentity:
        """A made-up one."""
        return ProcessIdentity(self.pid, 1, "fake", 1)

    @property
    def running(self) -> bool:
        """Released and not over."""
        return self.released and self._end is None

    def go(self) -> None:
        """Release it."""
        if self.abandoned or self._end is not None:
            return
        if self.command.spawn_error is not None:
            self._finish(EndCause.SPAWN_FAILED, None, None)
            return
        self.released = True
        if self.plan.timeout is not None:
            self._timers.append(call_later(self.plan.timeout, self._time_out))
        if self.command.exit_code is not None:
            code = self.command.exit_code
            self._timers.append(call_later(0, lambda: self.exit(code)))

    def exit(self, code: int = 0) -> None:
        """The test ends it, as if by itself."""
        if self.running:
            stopped = bool(self.signals)
            self._finish(self._cause if stopped else EndCause.EXITED, code, None)

    def die(self, signal: str = "SIGSEGV") -> None:
        """The test ends it by a signal that nobody of ours sent."""
        if self.running:
            self._finish(self._cause if self.signals else EndCause.EXITED, None, signal)

    def lose_keeper(self) -> None:
        """Its keeper dies: nobody will ever know how it ended."""
        if self._end is None:
            self._finish(EndCause.KEEPER_LOST, None, None)

    def stop(self, *, grace: float | None = None) -> None:
        """The ladder: SIGTERM, then SIGKILL after the grace."""
        if self._end is not None:
            return
        if not self.released:
            self.abandoned = True
            self._finish(EndCause.STOPPED, None, None)
            return
        self._stop_requested_at = self._stop_requested_at or now()
        grace = self.plan.kill_after if grace is None else grace
        if not grace:
            self._kill()
        elif not self.signals:
            self.signals.append("SIGTERM")
            if self.command.ignores_term:
                self._timers.append(call_later(grace, self._kill))
            else:
                self._finish(self._cause, None, "SIGTERM")

    async def abandon(self) -> None:
        """Give it up."""
        self.stop(grace=0)
        with anyio.CancelScope(shield=True):
            await self._over.wait()

    async def write(self, data: bytes) -> int:
        """Take input, while it runs."""
        self.written += data
        return len(data) if self.running else 0

    def close_stdin(self) -> None:
        """No more input."""

    def resize(self, size: WindowSize) -> None:
        """Take another window size."""
        self.sizes.append(size)

    async def wait(self) -> ProcessEnd:
        """Its end."""
        await self._over.wait()
        assert self._end is not None
        return self._end

    async def wait_rest(self) -> ProcessEnd:
        """A fake leaves nobody."""
        return await self.wait()

    def _time_out(self) -> None:
        if self._end is None and not self.signals:
            self._cause = EndCause.TIMED_OUT
            self.stop()

    def _kill(self) -> None:
        if self._end is None:
            self.signals.append("SIGKILL")
            self._finish(self._cause, None, "SIGKILL")

    def _finish(self, cause: EndCause, exit_code: int | None, signal: str | None) -> None:
        for take_back in self._timers:
            take_back()
        output = self.command.stdout if self.released else ""
        if output and self._on_output is not None:
            self._on_output("stdout", output.encode())
        self._end = ProcessEnd(
            facts=Process(
                self.pid, Containment.KEEPER, exit_code, signal, stdout=output, stdout_bytes=len(output), leader_exit_at=now()
            ),
            started=self.released,
            cause=cause,
            spawn_error=self.command.spawn_error if cause is EndCause.SPAWN_FAILED else None,
            signals=tuple(self.signals),
            escalated="SIGKILL" in self.signals and "SIGTERM" in self.signals,
            stop_requested_at=self._stop_requested_at,
            delivered_at=self._stop_requested_at if self.signals else None,
            ended_at=now(),
            still_running=None if cause is EndCause.KEEPER_LOST else (),
        )
        self._over.set()


@final
class FakeSupervisor:
    """Prepares fakes. `script` says what each does, by its plan; by default every process exits with 0 at once."""

    def __init__(self, script: FakeCommand | Callable[[LaunchPlan], FakeCommand] | None = None) -> None:
        self._script = script if script is not None else FakeCommand()
        self._changed = anyio.Event()
        self.processes: list[FakeProcess] = []
        """All that were prepared, in order."""
        self.closed = False

    def made(self) -> Self:
        """For `Runner(supervisor=fake.made)`."""
        return self

    async def prepare(
        self,
        plan: LaunchPlan,
        *,
        dirfd: int | None = None,  # noqa: ARG002 - the protocol's
        on_output: Observer | None = None,
        sink: Sink | None = None,  # noqa: ARG002 - the protocol's; a fake gives all of its output to the observer
    ) -> FakeProcess:
        """Make one and hold it at its gate."""
        if self.closed:
            raise RunnerClosed("its supervisor is closed")
        command = self._script if isinstance(self._script, FakeCommand) else self._script(plan)
        if command.refused is not None:
            raise SpawnRefused(SpawnErrorKind(command.refused.kind), command.refused.message)
        process = FakeProcess(plan, command, FIRST_PID + len(self.processes), on_output)
        self.processes.append(process)
        self._changed.set()
        self._changed = anyio.Event()
        await anyio.lowlevel.checkpoint()
        return process

    async def prepared(self, times: int = 1) -> FakeProcess:
        """Wait for the `times`-th process."""
        while len(self.processes) < times:
            await self._changed.wait()
        return self.processes[times - 1]

    async def aclose(self) -> None:
        """Stop all that is left."""
        self.closed = True
        for process in self.processes:
            await process.abandon()
