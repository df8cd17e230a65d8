"""Process bodies: a command behind its start gate, released at the moment of action and awaited until nothing of it is left."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import anyio

from toolrunner.facts import AbortReason, Process, Source, StopPhase, Text
from toolrunner.pipeline.bodies import Body, Gate, torn_down
from toolrunner.pipeline.state import ActiveCall, BodyEnd
from toolrunner.process import EndCause, LaunchPlan, Prepared, ProcessEnd, SpawnError, Stdin
from toolrunner.results import Code, Ended, Error, ErrorKind, Outcome
from toolrunner.tasks import OwnedTask
from toolrunner.tools import Command, Reply


def launch_plan(state: ActiveCall, kill_after: float) -> LaunchPlan:
    """What the supervisor is to start for this call."""
    command = state.command
    assert command is not None
    assert state.registration is not None
    tool = state.registration.tool
    grace = next((one for one in (command.kill_after, tool.kill_after) if one is not None), kill_after)
    return LaunchPlan(
        argv=tuple(command.argv),
        env=dict(command.env),
        cwd=state.environment.cwd or None,
        stdin=_stdin(command),
        output_limit=command.output_limit,
        kill_after=grace,
        timeout=next((one for one in (state.call.timeout, command.timeout, tool.timeout) if one is not None), None),
    )


def _stdin(command: Command) -> Stdin | bytes | Path:
    match command.stdin:
        case None:
            return Stdin.NULL
        case Stdin() | bytes() | Path():
            return command.stdin
        case str():  # after Stdin, whose members are strings too
            return command.stdin.encode()


@final
class CommandBody(Body):
    """One prepared process. `prepared` waits at its gate until `run`."""

    def __init__(self, state: ActiveCall, prepared: Prepared) -> None:
        self._state = state
        self.prepared = prepared

    async def run(self, gate: Gate, task: OwnedTask) -> BodyEnd | None:  # noqa: ARG002 - the ladder ends it, no cancel
        if not gate():
            await self.prepared.abandon()
            return None
        # The moment of action: nothing between the gate's yes and the release.
        self.prepared.go()
        end = await self._wait()
        self._trace(end)
        if not end.started:
            error = end.spawn_error
            self._state.never_ran(
                Error(error.kind, error.message) if error is not None else Error(ErrorKind.SETUP, "the command never ran")
            )
            return None
        return command_end(self._state, end)

    async def _wait(self) -> ProcessEnd:
        while True:
            try:
                with anyio.CancelScope(shield=True):
                    return await self.prepared.wait()
            except anyio.get_cancelled_exc_class():
                # The process must not outlive the loop: kill now, and go on waiting.
                torn_down(self._state)
                self.prepared.stop(grace=0)

    def deliver(self) -> None:
        self.prepared.stop()

    async def discard(self) -> None:
        await self.prepared.abandon()

    def _trace(self, end: ProcessEnd) -> None:
        trace = self._state.stop
        trace.signals, trace.escalated = end.signals, end.escalated
        if end.cause is EndCause.TIMED_OUT:
            trace.request(AbortReason(Source.TIMEOUT, "the time limit is over"), StopPhase.RUNNING, end.stop_requested_at)
        if trace.reason is not None and end.delivered_at is not None:
            trace.delivered_at = trace.delivered_at or end.delivered_at


def refused(state: ActiveCall, error: SpawnError) -> None:
    """The process was refused before its gate."""
    state.refuse(Outcome.REJECTED, Code.SPAWN_REFUSED, Error(error.kind, error.message))


def command_end(state: ActiveCall, end: ProcessEnd) -> BodyEnd:
    """How the command ended, as the pipeline tells it."""
    facts = end.facts
    stopped = end.cause in (EndCause.STOPPED, EndCause.TIMED_OUT)
    ended = Ended.LOST if end.cause is EndCause.KEEPER_LOST else Ended.STOPPED if stopped else Ended.RETURNED
    assert state.command is not None
    code, error = _failure(facts, state.command.ok) if ended is Ended.RETURNED else (None, None)
    if ended is Ended.LOST:
        code, error = Code.KEEPER_LOST, Error(ErrorKind.KEEPER_LOST, "the supervisor of the command was lost")
    return BodyEnd(
        ended,
        Reply(_value(facts), _content(facts)),
        error,
        code,
        timed_out=end.cause is EndCause.TIMED_OUT,
        saw_abort=bool(end.signals),
        process=facts,
        still_running=end.still_running,
        missing=end.missing,
    )


def _failure(facts: Process, ok: Sequence[int]) -> tuple[Code | None, Error | None]:
    if facts.signal is not None:
        return Code.KILLED_BY_SIGNAL, Error(
            ErrorKind.KILLED_BY_SIGNAL, f"killed by {facts.signal}, which toolrunner did not send"
        )
    if facts.exit_code not in ok:
        return Code.EXIT_STATUS, Error(ErrorKind.EXIT_STATUS, f"exit status {facts.exit_code}")
    return None, None


def _value(facts: Process) -> dict[str, Any]:
    return {"exit_code": facts.exit_code, "signal": facts.signal, "stdout": facts.stdout, "stderr": facts.stderr}


def _content(facts: Process) -> tuple[Text, ...]:
    parts = [facts.stdout, f"[stderr]\n{facts.stderr}" if facts.stderr else ""]
    return tuple(Text(part) for part in parts if part)
