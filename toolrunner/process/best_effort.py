"""One process without a keeper, behind the same `Prepared`: its own session, found again by group, parent and marker.

For systems and places where keepers cannot run. It does its best and says so: `still_running` is None when nothing is found.
The process is made by `go` itself; ladder and clocks run in whoever awaits `wait`. Only that task changes the state.
"""

import errno
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import final

import anyio

from toolrunner.facts import ProcessIdentity
from toolrunner.process.ending import ProcessEnd, SpawnErrorKind, SpawnRefused
from toolrunner.process.finish import Finish
from toolrunner.process.identity import identity_of, starttime_of
from toolrunner.process.keeping.messages import DRAIN_BOUND, REAP_BOUND
from toolrunner.process.keeping.system import peek
from toolrunner.process.launch import arguments, environment, open_directory, open_stdin, output_pipe
from toolrunner.process.pipes import Pipes
from toolrunner.process.plan import Leftovers, WindowSize
from toolrunner.process.report import Listing, Report
from toolrunner.process.request import Request
from toolrunner.process.survey import SCAN_PAUSE, Quarry, describe, end_all, listed, send, survey


@final
class LooseProcess:
    """A `Prepared` that nobody answers for. `closed` is called once, when it is over."""

    def __init__(self, request: Request, why: str, closed: Callable[["LooseProcess"], None]) -> None:
        """Raises SpawnRefused. Everything is opened and checked here; only the fork and the exec are left to `go`."""
        self.plan = plan = request.plan
        self.identity: ProcessIdentity | None = None
        self.unreaped: Listing = []  # what SIGKILL had not ended when the end was reported
        self._mark, self._why, self._closed = request.mark, why, closed
        if any(target != fd for target, fd in plan.pass_fds.items()):
            raise SpawnRefused(SpawnErrorKind.SETUP, "best_effort cannot give descriptors new numbers")
        if plan.leftovers is Leftovers.KEEP:
            text = f"best_effort cannot keep what outlives a command; there is no keeper because {why}"
            raise SpawnRefused(SpawnErrorKind.SETUP, text)
        if plan.tty is not None:  # only code between fork and exec can take one, and a host with threads must run none there
            raise SpawnRefused(SpawnErrorKind.SETUP, f"best_effort cannot give a terminal; there is no keeper because {why}")
        self._argv, self._env = arguments(plan), dict(entry.partition(b"=")[::2] for entry in environment(plan, request.mark))
        with ExitStack() as kept, ExitStack() as tools:
            try:
                stdin, feed = open_stdin(plan, tools, kept)
                outputs = [output_pipe(tools, kept) for _ in range(2)]
                cwd = os.dup(request.dirfd) if request.dirfd is not None else open_directory(plan)
                tools.callback(os.close, cwd)
                self._cwd = f"/proc/self/fd/{cwd}" if os.path.isdir("/proc/self/fd") else plan.cwd
                if self._cwd is not None and not os.access(self._cwd, os.X_OK):
                    raise SpawnRefused(SpawnErrorKind.SETUP, "working directory: " + os.strerror(errno.EACCES), errno.EACCES)
            except OSError as exc:
                raise SpawnRefused.from_os("descriptors for the process", exc) from exc
            self._tool_ends = (stdin, outputs[0][1], outputs[1][1])
            self._tools = tools.pop_all()  # open until `go` has used them
            kept.pop_all()
        self._pipes = Pipes(request, (outputs[0][0], outputs[1][0], feed))
        self._lock = anyio.Lock()
        self._scope: anyio.CancelScope | None = None  # of what `wait` is waiting for just now
        self._process: subprocess.Popen[bytes] | None = None
        self._report = Report(cause="exited", proven=False)  # grows until the end
        self._go_at: float | None = None
        self._stopped = False
        self._requested_at: datetime | None = None
        self._kill_after = plan.kill_after
        self._end: ProcessEnd | None = None
        self._held = True  # the leader is unreaped, so its number is still its own

    def go(self) -> None:
        """Make and release it: the moment of action. Takes about a millisecond; `wait` tells what went wrong."""
        if self._go_at is not None or self._stopped or self._end is not None:
            return
        self._go_at = time.monotonic()
        stdin, stdout, stderr = self._tool_ends
        try:
            if not self._argv[0]:  # a search would find the folders of PATH themselves
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            self._process = subprocess.Popen(
                self._argv, stdin=stdin, stdout=stdout, stderr=stderr, env=self._env, start_new_session=True,
                cwd=self._cwd, pass_fds=tuple(self.plan.pass_fds),
            )  # fmt: skip
        except (OSError, ValueError) as exc:
            number = getattr(exc, "errno", None) or errno.EINVAL
            interpreter = number == errno.ENOENT and b"/" in self._argv[0] and os.path.exists(self._argv[0])
            self._report = replace(self._report, cause="refused", released=False, exec_error=(number, interpreter))
        else:
            self.identity = identity_of(self._process.pid, starttime_of(self._process.pid))
        finally:
            self._tools.close()

    def stop(self, *, grace: float | None = None) -> None:
        """Ask for the ladder; see `Prepared.stop`."""
        grace = self.plan.kill_after if grace is None else max(0.0, grace)
        self._pipes.release_sinks()
        if self._end is not None or (self._stopped and grace >= self._kill_after):
            return
        self._requested_at = self._requested_at or datetime.now(UTC)
        self._stopped, self._kill_after = True, grace
        if self._scope is not None:
            self._scope.deadline = -math.inf

    async def write(self, data: bytes) -> int:
        """Write to stdin; see `Prepared.write`."""
        return await self._pipes.write(data) if self._end is None else 0

    def close_stdin(self) -> None:
        """No more input; see `Prepared.close_stdin`."""
        self._pipes.end_input()

    def resize(self, size: WindowSize) -> None:
        """There is never a terminal here."""

    async def abandon(self) -> None:
        """Give it up; see `Prepared.abandon`."""
        with anyio.CancelScope(shield=True):
            self.stop(grace=0)
            await self.wait()

    async def wait(self) -> ProcessEnd:
        """The end; see `Prepared.wait`. Its clocks run only while someone waits."""
        async with self._lock:
            if self._end is None and self._process is not None:
                await self._run(self._process)
            return self._end or self._finish()

    async def wait_rest(self) -> ProcessEnd:
        """Nobody is ever kept here."""
        return await self.wait()

    def _finish(self) -> ProcessEnd:
        self._report = replace(self._report, at=time.monotonic(), proven=self._process is None)
        finish = Finish(self.plan, self._pipes.readers, self._go_at is not None, self._stopped, self._why)
        self._end = finish.build(self._report, self.identity, self._requested_at)
        self.unreaped = self._report.left
        self.dispose()
        return self._end

    def forget(self) -> None:
        """In a forked child of the host: close the copies, touch nothing else."""
        self._tools.close()
        self._pipes.forget()
        if self._process is not None:
            self._process.returncode = 0  # not this process's child

    def dispose(self) -> None:
        """Close everything. Idempotent."""
        self._tools.close()
        self._pipes.close()
        if self._process is not None:
            self._process.poll()  # reaps; what is stuck in the kernel is reaped by a later Popen
        self._closed(self)

    # -- the life of the process ------------------------------------------------------------------------------------------

    async def _run(self, process: subprocess.Popen[bytes]) -> None:
        quarry = Quarry(self._mark, self.identity)
        async with anyio.create_task_group() as tasks:
            self._pipes.start(tasks, lambda: None)
            deadline = math.inf if self.plan.timeout is None else (self._go_at or 0) + self.plan.timeout
            await self._exit_until(process.pid, deadline, lambda: self._stopped)
            if self._report.exit_at is None or self._report.delivered is not None:
                await self._ladder(quarry, process.pid)
            else:
                await self._drain(quarry)
            if listed() is None:  # whoever is left is not found: its group, while the leader holds the number, is all we know
                self._signal_group(process.pid, signal.SIGKILL)
            elif self._report.cause != "exited" or self._report.leftovers:
                self._report = replace(self._report, left=await end_all(quarry, REAP_BOUND))
            self._look(process.pid)
            self._pipes.finish()

    async def _exit_until(self, pid: int, deadline: float, interrupted: Callable[[], bool]) -> None:
        """Wait for the leader's exit, until a monotonic time or an interruption."""
        while self._look(pid) is None and not interrupted() and (left := deadline - time.monotonic()) > 0:
            await self._pause(pid, left)

    async def _pause(self, pid: int, seconds: float) -> None:
        """Sleep until the leader exits, something is asked for, or the time is over."""
        fd = _pidfd(pid)
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
            self._scope = scope
            try:
                if fd >= 0:
                    await anyio.wait_readable(fd)
                else:
                    await anyio.sleep(min(seconds, SCAN_PAUSE))
            finally:
                self._scope = None
                if fd >= 0:
                    os.close(fd)

    def _look(self, pid: int) -> int | None:
        """The leader's status once it is dead. It stays a zombie, so that its group can still be signalled."""
        if self._report.exit_at is None:
            try:
                status = peek(pid)
            except ChildProcessError:  # someone else in this process reaped it: the group's number is no longer ours
                status, self._held = None, False
            if status is not None or not self._held:
                self._report = replace(self._report, status=status, exit_at=time.monotonic())
        return 0 if self._report.exit_at is not None else None

    async def _ladder(self, quarry: Quarry, pid: int) -> None:
        """SIGTERM, then wait until nobody is left or the grace is over. A waiter that was cancelled goes on where it was."""
        if self._report.delivered is None:
            self._begin_ladder(quarry, pid)
        began = self._report.delivered or 0.0
        while time.monotonic() < began + self._kill_after:
            grace = self._kill_after
            await self._exit_until(pid, began + grace, lambda: self._kill_after < grace)  # noqa: B023 - awaited at once
            if self._report.exit_at is not None:
                if not survey(quarry):
                    return
                await anyio.sleep(SCAN_PAUSE)
        self._note("SIGKILL")
        self._signal_group(pid, signal.SIGKILL)

    def _begin_ladder(self, quarry: Quarry, pid: int) -> None:
        """SIGTERM to all, each once, then SIGCONT. Who is outside the group is looked up before the group gets its signal."""
        self._pipes.stopping()
        cause = "stopped" if self._stopped else "timed_out"
        self._report = replace(self._report, cause=cause, delivered=time.monotonic())
        if self._kill_after > 0:
            outside = [process for process in survey(quarry) if not _in_group(process.pid, pid)]
            for number in (signal.SIGTERM, signal.SIGCONT):
                self._signal_group(pid, number)
                for process in outside:
                    send(process, number)
            self._note("SIGTERM")

    def _signal_group(self, group: int, number: int) -> None:
        """Signal the call's group while its unreaped leader holds the number. Init's and our own are refused."""
        if self._held and group > 1 and group != os.getpgrp():
            try:
                os.killpg(group, number)
            except OSError:  # nobody left in it, or nobody we may signal
                pass

    def _note(self, name: str) -> None:
        if name not in self._report.signals:
            self._report = replace(self._report, signals=(*self._report.signals, name))

    async def _drain(self, quarry: Quarry) -> None:
        """The leader went by itself. What outlives it may go on until both streams are at their end, or for D."""
        until = time.monotonic() + DRAIN_BOUND
        while found := survey(quarry):
            if self._stopped or self._pipes.at_eof or time.monotonic() >= until:
                out = time.monotonic() >= until and not self._pipes.at_eof
                self._report = replace(self._report, leftovers=[describe(process) for process in found], drained_out=out)
                return
            await anyio.sleep(SCAN_PAUSE)


def _pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return -1


def _in_group(pid: int, group: int) -> bool:
    try:
        return os.getpgid(pid) == group
    except OSError:
        return False
