"""`toolrunner batch`: calls as JSON Lines in, one line of result for each out, in order, as they are committed.

State: one `_BatchRun`, changed on its loop. Results go to a copy of standard output: whatever a tool in this process prints goes
to standard error instead, where it cannot be taken for a result.
"""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import anyio
import anyio.abc

from toolrunner.calls import ToolCall
from toolrunner.cli import exit_codes
from toolrunner.cli.asker import approver
from toolrunner.cli.journals import Where, controlled
from toolrunner.cli.lines import Malformed, Numbered
from toolrunner.cli.resume import resumed, settled_calls
from toolrunner.cli.sink import Pause, Writer, write_last
from toolrunner.cli.stops import Stops
from toolrunner.cli.voice import Voice
from toolrunner.facts import StillRunningKind
from toolrunner.journal import SqliteJournal
from toolrunner.policy import Policy
from toolrunner.process import Supervisor
from toolrunner.records import CallDispatched, CallEnded, Record, StillRunningReport
from toolrunner.results import ToolResult, result_to_json
from toolrunner.runner import Batch, Runner
from toolrunner.tools import Toolset

LAST_CHANCE = 0.1
"""Seconds that bodies in this process get to end after somebody insisted; then they are told as still running, and we leave."""

PROGRESS_AFTER = 2.0
"""Seconds until a person at the terminal is told how far it is; less would only flicker."""

PROGRESS_EVERY = 1.0
"""Seconds between two looks of that person at the same line."""

NAMED = 3
"""Running calls that are named in it."""


def take_stdout() -> int:
    """Our own copy of standard output; what is called standard output from now on is standard error."""
    own = os.dup(1)
    os.dup2(2, 1)
    return own


@final
@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for. `resume`: leave out what is settled in the journal already."""

    lines: tuple[Numbered, ...]
    tools: Toolset
    max_parallel: int
    where: Where
    resume: bool = False
    policy: Policy | None = None


async def run_batch(request: Request, stdout: int) -> int:
    """Run the calls, write a line for each; returns the exit status. Raises `NoJournal` before anything runs."""
    return await _BatchRun(request, stdout, request.where.open()).run()


@final
class _BatchRun:
    def __init__(self, request: Request, stdout: int, journal: SqliteJournal) -> None:
        self._request, self._journal = request, journal
        self._lines: Sequence[ToolCall | Malformed] = [one.item for one in request.lines]
        self._stdout, self._stderr = Writer(stdout), Writer(2)
        self._voice = Voice(self._stdout, self._stderr)
        self._stops = Stops(self._told_to_stop, self._told_to_pause)
        self._supervisor = Supervisor()
        self._pause = Pause()
        self._running: dict[str, str] = {}
        """run_id -> name of the calls whose bodies run."""
        self._done = 0
        self._left: list[str] = []
        """Names of the bodies that still ran when their result was published."""
        self._journal_failed = False
        """Whether it was said that the journal cannot be written."""

    async def run(self) -> int:
        tools, most = self._request.tools, self._request.max_parallel
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._stops.listen)
            async with (
                Runner(
                    tools, max_parallel=most, journal=self._journal, supervisor=lambda: self._supervisor,
                    policy=self._request.policy, approver=approver(self._request.policy, self._pause, self._said),
                ) as runner,
                controlled(runner, self._journal, self._stops.abort.abort),
            ):  # fmt: skip
                closed = anyio.Event()
                self._stops.hurry.signal.on_abort(lambda: tasks.start_soon(self._close_now, runner, closed))
                tasks.start_soon(self._show_progress)
                if self._request.resume:
                    self._leave_out_settled()
                calls = [line for line in self._lines if isinstance(line, ToolCall)]
                await self._write_lines(runner.start_batch(calls, signal=self._stops.abort.signal, on_event=self._on_event))
                self._tell_of_journal()
                self._stops.is_over = True
                if self._left:
                    await closed.wait()
                    await self._leave()
            self._stops.status = status = self._status()
            tasks.cancel_scope.cancel()
        return status

    def _leave_out_settled(self) -> None:
        """After the journal was recovered: only then is it known of every call whether it started."""
        with self._journal.reader() as reader:
            left = resumed(self._request.lines, settled_calls(reader))
        self._lines = left.lines
        doubt = f" ({left.doubtful} of them with effects that are not known; see toolrunner log)" if left.doubtful else ""
        self._voice.insist(f"{left.skipped} of {len(self._request.lines)} calls were settled already and are left out{doubt}")

    def _status(self) -> int:
        if self._stops.abort.signal.aborted:
            return exit_codes.of_abort(self._stops.first)
        return exit_codes.USAGE if any(isinstance(line, Malformed) for line in self._lines) else 0

    async def _write_lines(self, batch: Batch) -> None:
        """Every line in its place. After a failed write the rest is still waited for: what was started has to end."""
        results = batch.stream()
        for line in self._lines:
            if isinstance(line, Malformed):
                await self._write(line.to_json())
            else:
                await self._write_result(await anext(results))
        try:
            await batch
        except (KeyboardInterrupt, SystemExit) as error:  # out of a tool's body: the batch was stopped for it, and is drained
            self._stops.abort.abort(f"a tool raised {type(error).__name__}")
            self._voice.insist(f"a tool raised {type(error).__name__}, which stopped the batch")

    async def _write_result(self, result: ToolResult) -> None:
        self._done += 1
        bodies = [one.what for one in result.still_running or () if one.kind is StillRunningKind.BODY]
        self._left += bodies
        for name in bodies:
            self._voice.insist(f"{name} still runs and cannot be killed in this process; what it does from here on is not known")
        self._tell_of_journal()
        await self._write(result_to_json(result))

    def _tell_of_journal(self) -> None:
        """Once: each result may have a note of it, but not the one whose `call/settled` was the first that was lost."""
        problem = self._journal.error
        if problem is not None and not self._journal_failed:
            self._journal_failed = True
            self._voice.insist(
                f"the journal cannot be written: {problem}; no more calls are started, and results are in the output alone"
            )

    async def _write(self, line: str) -> None:
        if self._stdout.error is not None:
            return
        await self._pause.over()
        self._voice.clear()
        try:
            await write_last(self._stdout, line.encode(errors="replace") + b"\n", self._stops.hurry.signal)
        except OSError as error:
            self._stops.output_failed("stdout", error)

    # A stop.

    async def _close_now(self, runner: Runner, closed: anyio.Event) -> None:
        """Somebody insists: processes are killed, bodies that do not end are told as still running."""
        self._supervisor.stop_all(grace=0)
        await runner.aclose(LAST_CHANCE)
        closed.set()

    async def _leave(self) -> None:
        """Exit although bodies run in this process: the interpreter would wait for them. All results are written."""
        try:
            await write_last(self._stderr, b"", self._stops.hurry.signal)
        except OSError:
            pass
        os._exit(self._status())

    # What is said while it runs.

    async def _said(self) -> None:
        """Wait until what was said is written, and no status line stands where a question is about to."""
        self._voice.clear()
        try:
            await write_last(self._stderr, b"", self._stops.hurry.signal)
        except OSError:
            pass

    def _on_event(self, record: Record) -> None:
        if isinstance(record, CallDispatched):
            self._running[record.run_id] = record.name
        elif isinstance(record, CallEnded):
            self._running.pop(record.run_id, None)
        elif isinstance(record, StillRunningReport):
            names = ", ".join(one.what for one in record.what)
            self._voice.say(f"still waiting for {names} to end, {record.waited:g} s after it was asked")

    def _told_to_stop(self, number: signal.Signals, insisting: bool) -> None:
        by_key = number is signal.SIGINT
        if insisting:
            text = f"{number.name} again: killing what can be killed, and leaving"
        else:
            again = "press Ctrl-C" if by_key else f"send {number.name}"
            text = f"{number.name}: stopping {self._names() or 'before anything runs'}; {again} again to kill and leave"
        self._voice.say(text, after_key=by_key)

    def _told_to_pause(self) -> None:
        self._voice.say("Ctrl-Z: calls cannot be paused, and go on; Ctrl-C stops them", after_key=True)

    def _names(self) -> str:
        names = list(self._running.values())
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        return ", ".join(names[:NAMED]) + more

    async def _show_progress(self) -> None:
        if not self._voice.can_update:
            return
        began = anyio.current_time()
        await anyio.sleep(PROGRESS_AFTER)
        while not self._stops.is_over:
            await self._pause.over()
            seconds = anyio.current_time() - began
            total = sum(isinstance(line, ToolCall) for line in self._lines)
            running = f", running: {self._names()}" if self._running else ""
            self._voice.status(f"{self._done} of {total} done after {seconds:.0f} s{running}")
            await anyio.sleep(PROGRESS_EVERY)
