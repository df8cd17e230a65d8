"""`toolrunner chat`: a conversation with a model at a plain terminal, with the built-in tools; stopped by Esc or Ctrl-C.

State: one `Chat`, changed on its loop: the turn that runs, and how often it was told to stop. What a stop means is told in three
layers: that it was asked for, that everything has ended, and what outside may have changed.
"""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import anyio
import anyio.abc

from toolrunner.agent import AgentLoop, Frame, Session, StreamChunk, TurnResult
from toolrunner.agent.providers import ClosableModel
from toolrunner.cli import exit_codes
from toolrunner.cli.asker import approver
from toolrunner.cli.journals import Where, controlled
from toolrunner.cli.printable import printable
from toolrunner.cli.sink import Pause, Writer
from toolrunner.cli.stops import LEAVE_AT
from toolrunner.cli.talk import Talk
from toolrunner.cli.voice import Voice
from toolrunner.facts import Source
from toolrunner.history import chat as said_before
from toolrunner.history.chunks import BlockKind, BlockStart, Delta
from toolrunner.history.views import ChatKind
from toolrunner.journal import RawRecord, SqliteJournal
from toolrunner.policy import Policy
from toolrunner.process import Supervisor
from toolrunner.records import CallDispatched, CallSettled, Record
from toolrunner.results import BatchResult
from toolrunner.results.phrases import still
from toolrunner.runner import Runner
from toolrunner.tools import Tools

__all__ = ["Chat", "Wanted", "layers"]

PROMPT = "> "

LONGEST = 300
"""Characters of one foreign text in a line of ours."""

SHOWN_BEFORE = 6
"""Lines of an earlier conversation that are shown when it is gone on with."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line asked for."""

    model: ClosableModel
    tools: Tools
    policy: Policy | None
    where: Where
    system: str = ""
    max_steps: int | None = None
    max_tokens: int | None = None


@final
class Chat:
    """One run of the command."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._stdout = Writer(1)
        # At one terminal one writer, so that everything stands there in the order in which it was said.
        self._stderr = self._stdout if self._stdout.is_terminal and os.isatty(2) else Writer(2)
        self._voice, self._pause = Voice(self._stdout, self._stderr), Pause()
        self._talk = Talk(self._stdout, self._pause)
        self._supervisor = Supervisor()
        self._agent: AgentLoop | None = None
        self._stops = 0
        self._busy = False
        self._leaving: signal.Signals | None = None
        self._line = anyio.CancelScope()
        self._texts: set[int] = set()
        self._failed = False

    async def run(self) -> int:
        """Talk until the input ends, or a signal ends us. Returns the exit status. Raises `NoJournal` before anything runs."""
        journal = self._wanted.where.open()
        session = Session.on(journal)
        before = _before(journal)
        asker = approver(self._wanted.policy, self._pause, self._flush)
        try:
            async with anyio.create_task_group() as tasks:
                await tasks.start(self._signals)
                async with (
                    Runner(
                        [self._wanted.tools], journal=journal, policy=self._wanted.policy, approver=asker,
                        supervisor=lambda: self._supervisor,
                    ) as runner,
                    controlled(runner, journal, self._stop_all),
                    self._agent_of(runner, session) as agent,
                ):  # fmt: skip
                    self._agent = agent
                    self._greet(journal, before)
                    await self._talk_on(agent)
                tasks.cancel_scope.cancel()
        finally:
            await self._wanted.model.aclose()
        await self._flush()
        if self._leaving is not None:
            return exit_codes.of_abort(self._leaving)
        return exit_codes.FAILED if self._failed else 0

    def _agent_of(self, runner: Runner, session: Session) -> AgentLoop:
        wanted = self._wanted
        limits: dict[str, Any] = {} if wanted.max_steps is None else {"max_steps": wanted.max_steps}
        agent = AgentLoop(wanted.model, runner, session, system=wanted.system, max_tokens=wanted.max_tokens, **limits)
        agent.on_stream(self._show)
        session.observe(self._tell_of_calls)
        return agent

    async def _talk_on(self, agent: AgentLoop) -> None:
        while self._leaving is None:
            line: str | None = None
            with anyio.CancelScope() as self._line:
                line = await self._talk.line(PROMPT)
            if line is None:
                return
            if line.strip():
                await self._turn(agent, line.strip())

    async def _turn(self, agent: AgentLoop, line: str) -> None:
        self._stops, self._busy = 0, True
        try:
            async with self._talk.keys(lambda: self._stop("Esc")):
                result = await agent.prompt(line)
        finally:
            self._busy = False
        if not self._stdout.at_line_start:
            self._stdout.say(b"\n")
        await self._tell(result)

    # What stops a turn.

    async def _signals(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
            task_status.started()
            async for number in received:
                if number is not signal.SIGINT:
                    self._leaving = number
                    self._line.cancel()
                if self._busy:
                    self._stop("Ctrl-C" if number is signal.SIGINT else number.name)
                elif number is signal.SIGINT and self._talk.is_terminal:
                    self._stdout.say(b"\n")
                    self._voice.insist("Ctrl-D leaves")
                    self._stdout.say(PROMPT.encode())
                elif number is signal.SIGINT:
                    self._leaving = number
                    self._line.cancel()

    def _stop(self, how: str) -> None:
        """The first request stops the turn by its ladder, the second kills what runs now, the third leaves."""
        self._stops += 1
        if self._stops >= LEAVE_AT:
            self._talk.restore()
            os._exit(exit_codes.of_abort(self._leaving or signal.SIGINT))
        if self._stops > 1:
            self._voice.insist(f"{how} again: killing what runs now")
            self._supervisor.stop_all(grace=0)
        elif self._agent is not None:
            self._agent.cancel(how, source=Source.HOST if self._leaving is not None else Source.CALLER)
            self._voice.insist(f"{how}: asked to stop; waiting until what runs has ended ({how} again kills it now)")

    def _stop_all(self, text: str) -> object:
        """`toolrunner cancel` of all that runs here."""
        return self._agent.cancel(text) if self._agent is not None else None

    # What is shown.

    def _greet(self, journal: SqliteJournal, before: list[str]) -> None:
        if not self._talk.is_terminal:
            return
        named = f"session {journal.session}" if journal.session is not None else str(journal.path)
        self._voice.insist(f"{named}; Esc or Ctrl-C stops a turn, Ctrl-D leaves")
        for line in before:
            self._voice.insist(line)

    def _show(self, frame: Frame) -> None:
        if not isinstance(frame, StreamChunk):
            self._texts.clear()
        elif isinstance(frame.chunk, BlockStart) and frame.chunk.kind is BlockKind.TEXT:
            self._texts.add(frame.chunk.index)
        elif isinstance(frame.chunk, Delta) and frame.chunk.index in self._texts:
            self._talk.say(frame.chunk.text)

    def _tell_of_calls(self, record: Record) -> None:
        if isinstance(record, CallDispatched):
            self._voice.insist(f"{printable(record.name, LONGEST)} {printable(record.arguments, LONGEST)}")
        elif isinstance(record, CallSettled) and record.result.parent_run_id is None:
            self._voice.insist(record.result.summary())

    async def _tell(self, result: TurnResult) -> None:
        if result.outcome == "error":
            self._failed = True
            self._voice.insist(f"the turn failed: {result.error}")
        elif result.outcome == "aborted":
            for line in layers(result):
                self._voice.insist(line)
        elif result.stop is not None and result.stop not in ("stop", "tool_calls"):
            self._voice.insist(f"the model ended with: {result.stop}")
        await self._flush()

    async def _flush(self) -> None:
        """Wait until what was said is written; whoever does not read is not waited for."""
        for writer in (self._stdout, self._stderr):
            try:
                await writer.write(b"")
            except OSError:
                pass


def layers(result: TurnResult) -> list[str]:
    """The second and the third layer of a turn that is over; the first was told when the stop was asked for."""
    why = result.reason.text if result.reason is not None else ""
    outside = [f"{'check: ' if one.check else 'changed: '}{one.text}" for one in result.outside]
    if not outside:
        outside = ["nothing outside has to be checked: no call of this turn is known to have changed anything"]
    return [f"stopped ({printable(why, LONGEST)}): {_ended(BatchResult(result.results))}", *outside]


def _ended(calls: BatchResult) -> str:
    """What is known of the end of all that was under way: not every platform can prove it, and a job may be kept on purpose."""
    left = calls.still_running
    if left is None:
        return "nothing was found that still runs (not provable here)"
    return printable(still(left), LONGEST) if left else "everything that was under way has ended"


def _before(journal: SqliteJournal) -> list[str]:
    """The end of the conversation so far, for who goes on with it."""
    with journal.reader() as reader:
        records = [entry.record for entry in reader if not isinstance(entry.record, RawRecord)]
    return list(_lines(records))[-SHOWN_BEFORE:]


def _lines(records: list[Record]) -> Iterator[str]:
    names = {ChatKind.USER: "you", ChatKind.ASSISTANT: "model", ChatKind.STOPPED: "stopped", ChatKind.SYSTEM: "host"}
    for item in said_before(records):
        if item.kind in names:
            cut = " (cut off)" if item.interrupted else ""
            yield f"{names[item.kind]}{cut}: {printable(item.text, LONGEST)}"
