"""`toolrunner run`: one command through a Runner, its output passed on, its truth told.

State: one `_Run`, changed on its loop. The order at the end matters: everything is over and the Runner is closed, then the result
is written, so that whoever reads it finds nothing running that it does not list.
"""

import os
import signal
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import final

import anyio
import anyio.abc

from toolrunner.cli import exit_codes
from toolrunner.cli.asker import approver
from toolrunner.cli.files import NotWritable, check_writable, write_file
from toolrunner.cli.journals import Where, controlled
from toolrunner.cli.keyboard import Raw, Seat
from toolrunner.cli.records import record_line
from toolrunner.cli.report import for_terminal, one_line, says_nothing_new
from toolrunner.cli.sink import PassThrough, Pause, Writer, reader_gone, write_last
from toolrunner.cli.stops import Stops
from toolrunner.cli.voice import Voice, terminal_width
from toolrunner.cli.wish import Wish
from toolrunner.journal import SqliteJournal
from toolrunner.process import JobTable, Stdin, Supervisor
from toolrunner.records import CallDispatched, Record, StillRunningReport
from toolrunner.results import ToolResult, result_to_json
from toolrunner.runner import Batch, Runner


class Form(StrEnum):
    """What goes to standard output."""

    OUTPUT = "output"
    """The command's own; the report goes to standard error."""
    JSON = "json"
    """One line, the result; nothing else anywhere."""
    EVENTS = "events"
    """A line for each record as it happens, then the result."""


@final
@dataclass(frozen=True, slots=True)
class Telling:
    """How the result is told. `report` is a file for its JSON."""

    form: Form = Form.OUTPUT
    report: Path | None = None
    quiet: bool = False


async def run(wish: Wish, telling: Telling, where: Where) -> int:
    """Run it and tell it; returns the exit status. Raises `NotWritable` or `NoJournal` before anything runs."""
    if telling.report is not None:
        check_writable(telling.report)
    return await _Run(wish, telling, where.open()).run()


class _Run:
    def __init__(self, wish: Wish, telling: Telling, journal: SqliteJournal) -> None:
        self._wish, self._telling, self._journal = wish, telling, journal
        self._stdout, self._stderr = Writer(1), Writer(2)
        self._voice = Voice(self._stdout, self._stderr)
        self._stops = Stops(self._told_to_stop, self._told_to_pause)
        self._supervisor = Supervisor()
        self._pid: int | None = None
        self._told: int | None = None
        """The exit status, once the result was told."""
        by_keys = wish.tty is not None and wish.stdin is Stdin.OPEN
        self._raw = Raw(0, self._switched) if by_keys else None
        self._seat = Seat(self._supervisor, self._raw, self._stops.ask) if wish.tty is not None else None

    async def run(self) -> int:
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._stops.listen)
            self._stops.hurry.signal.on_abort(lambda: self._supervisor.stop_all(grace=0))
            if self._seat is not None:
                tasks.start_soon(self._seat.serve)
            if self._telling.form is Form.JSON:
                tasks.start_soon(self._watch_reader)
            if self._raw is not None:
                self._stops.leaving = self._raw.restore
                self._say_escape()
            try:
                result = await self._result()
            finally:
                if self._raw is not None:
                    self._raw.restore()
            self._stops.is_over = True
            self._stops.status = status = self._told if self._told is not None else await self._tell(result)
            tasks.cancel_scope.cancel()
        return status

    async def _result(self) -> ToolResult:
        passes = self._telling.form is Form.OUTPUT
        pause = Pause()
        sink = PassThrough(self._stdout, self._stderr, self._stops.output_failed, pause) if passes else None
        policy = self._wish.policy
        async with (
            Runner(
                [self._wish.tool(sink)], journal=self._journal, supervisor=lambda: self._seat or self._supervisor,
                policy=policy, approver=approver(policy, pause, self._flush),
            ) as runner,
            controlled(runner, self._journal, self._stops.abort.abort),
        ):  # fmt: skip
            batch = runner.start_batch([self._wish.call()], signal=self._stops.abort.signal, on_event=self._on_event)
            if self._telling.form is Form.EVENTS:
                await self._write_events(batch)
            result = (await batch)[0]
            if runner.jobs.list():
                await self._stay(result, runner.jobs)
            return result

    async def _stay(self, result: ToolResult, jobs: JobTable) -> None:
        """What it left is ours (`--leftovers keep`): tell the result now, and stay until nothing is left or somebody stops us.

        Then the Runner closes, and ends what still runs. The keepers would end it in any case when we are gone.
        """
        if self._raw is not None:
            self._raw.restore()
        self._stops.status = self._told = await self._tell(result)
        for job in jobs.list() if self._telling.form is Form.OUTPUT and not self._telling.quiet else ():
            named = ", ".join(f"{one.what.partition(' (')[0]} (pid {one.pid})" for one in job.still_running())
            self._voice.insist(f"{named} kept running; Ctrl-C or `kill {os.getpid()}` ends it, and so does our end")
        async with anyio.create_task_group() as tasks:

            async def leave_when_stopped() -> None:
                await self._stops.abort.signal.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(leave_when_stopped)
            for job in jobs.list():
                await job.wait()
            tasks.cancel_scope.cancel()

    async def _watch_reader(self) -> None:
        """With --json nothing is written before the end, so a reader that leaves has to be looked for."""
        try:
            await reader_gone(1)
        except OSError as error:
            self._stops.output_failed("stdout", error)

    async def _write_events(self, batch: Batch) -> None:
        """Each record when it comes. A reader that is slow holds nobody up but itself; one that left stops the call."""
        seq = 0
        async for record in batch.events():
            seq += not record.transient
            try:
                await write_last(self._stdout, record_line(record, seq), self._stops.hurry.signal)
            except OSError as error:
                self._stops.output_failed("stdout", error)
                return

    # What is said while it runs.

    def _switched(self, raw: bool) -> None:
        self._voice.is_raw = raw

    def _say_escape(self) -> None:
        if not self._telling.quiet:
            self._voice.say(f"all keys go to {self._what()}; Ctrl-] three times within a second stops it")

    def _on_event(self, record: Record) -> None:
        if isinstance(record, CallDispatched) and record.process is not None:
            self._pid = record.process.pid
        elif isinstance(record, StillRunningReport):
            self._voice.say(f"still waiting for {self._what()} to end, {record.waited:g} s after it was asked")

    def _told_to_stop(self, number: signal.Signals, insisting: bool) -> None:
        by_key = number is signal.SIGINT
        if insisting:
            text = f"{number.name} again: killing {self._what()} now"
        else:
            key = "Ctrl-C" if self._raw is None else "Ctrl-] three times"
            again = f"press {key}" if by_key else f"send {number.name}"
            text = f"{number.name}: stopping {self._what()}, {self._wish.kill_after:g} s at most; {again} again to kill it now"
        self._voice.say(text, after_key=by_key)

    def _told_to_pause(self) -> None:
        self._voice.say(f"Ctrl-Z: {self._what()} cannot be paused, and runs on; Ctrl-C stops it", after_key=True)

    def _what(self) -> str:
        name = Path(self._wish.argv[0]).name
        return f"{name} (pid {self._pid})" if self._pid is not None else name

    # What is told when it is over.

    async def _tell(self, result: ToolResult) -> int:
        status = exit_codes.of_result(result, self._stops.first)
        if not await self._deliver(result):
            status = status or exit_codes.NOT_WRITTEN
        return status

    async def _deliver(self, result: ToolResult) -> bool:
        """Everything that was asked for, each whatever became of the others. False if the result did not get where it should."""
        line = result_to_json(result) + "\n"
        problems = []
        if self._telling.report is not None:
            problems.append(await self._to_file(self._telling.report, line))
        try:
            if self._telling.form is Form.OUTPUT:
                await self._write_report(result)
            else:
                await write_last(self._stdout, line.encode(), self._stops.hurry.signal)
        except OSError as error:
            # The report is for people; without a reader there is nobody to miss it.
            if self._telling.form is not Form.OUTPUT:
                problems.append(f"the result cannot be written to standard output: {error.strerror or error}")
        found = [problem for problem in problems if problem]
        for problem in found:
            self._voice.insist(problem)
        await self._flush()
        return not found

    async def _to_file(self, path: Path, line: str) -> str:
        try:
            write_file(path, line.encode())
        except NotWritable as error:
            return str(error)
        return ""

    async def _write_report(self, result: ToolResult) -> None:
        if self._telling.quiet and says_nothing_new(result):
            return
        text = one_line(result)
        if self._stderr.is_terminal:
            text = self._voice.fresh_line() + for_terminal(result, terminal_width(self._stderr.fd))
        await write_last(self._stderr, text.encode(errors="replace"), self._stops.hurry.signal)

    async def _flush(self) -> None:
        """Wait until what was said without waiting is written."""
        try:
            await write_last(self._stderr, b"", self._stops.hurry.signal)
        except OSError:
            pass
