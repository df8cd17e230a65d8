"""Process bodies: a command behind its start gate, released at the moment of action and awaited until nothing of it is left."""

from pathlib import Path
from typing import final

from toolrunner.facts import ProcessIdentity
from toolrunner.pipeline.bodies import Body, Gate
from toolrunner.pipeline.context import BodyServices
from toolrunner.pipeline.exits import exit_failure, exit_value, output_content
from toolrunner.pipeline.released import never_ran, note_stop, released_end
from toolrunner.pipeline.services import Limits, Services
from toolrunner.pipeline.state import ActiveCall, BodyEnd
from toolrunner.process import EndCause, LaunchPlan, Prepared, ProcessEnd, SpawnError, Stdin, WindowSize
from toolrunner.results import Code, Ended, Error, ErrorKind, Outcome
from toolrunner.tasks import OwnedTask
from toolrunner.tools import Command, Reply


def launch_plan(state: ActiveCall, limits: Limits) -> LaunchPlan:
    """What the supervisor is to start for this call."""
    command = state.command
    assert command is not None
    assert state.registration is not None
    tool = state.registration.tool
    grace = next((one for one in (command.kill_after, tool.kill_after) if one is not None), limits.kill_after)
    return LaunchPlan(
        argv=tuple(command.argv),
        env=dict(command.env),
        cwd=state.environment.cwd or None,
        stdin=_stdin(command),
        output_limit=command.output_limit,
        spill_dir=limits.spill_dir,
        kill_after=grace,
        timeout=next((one for one in (state.call.timeout, command.timeout, tool.timeout) if one is not None), None),
        tty=command.tty if isinstance(command.tty, WindowSize) else WindowSize() if command.tty else None,
    )


def _stdin(command: Command) -> Stdin | bytes | Path:
    match command.stdin:
        case None:
            return Stdin.NULL
        case Stdin() | bytes() | Path():
            return command.stdin
        case str():  # after Stdin, whose members are strings too
            return command.stdin.encode()


async def command_body(state: ActiveCall, services: Services) -> "CommandBody":
    """The command at its gate. Raises SpawnRefused."""
    assert state.command is not None
    prepared = await services.prepare_process(
        launch_plan(state, services.limits),
        on_output=BodyServices(state, services).process_output,
        sink=state.command.sink,
    )
    return CommandBody(state, prepared)


@final
class CommandBody(Body):
    """One prepared process. `prepared` waits at its gate until `run`."""

    def __init__(self, state: ActiveCall, prepared: Prepared) -> None:
        self._state = state
        self.prepared = prepared

    @property
    def identity(self) -> ProcessIdentity | None:
        return self.prepared.identity

    async def run(self, gate: Gate, task: OwnedTask) -> BodyEnd | None:  # noqa: ARG002 - the ladder ends it, no cancel
        if not gate():
            await self.prepared.abandon()
            return None
        # The moment of action: nothing between the gate's yes and the release.
        self.prepared.go()
        end = await released_end(self._state, self.prepared)
        note_stop(self._state, end, timed_out=end.cause is EndCause.TIMED_OUT)
        if never_ran(self._state, end):
            return None
        return command_end(self._state, end)

    def deliver(self) -> None:
        self.prepared.stop()

    async def discard(self) -> None:
        await self.prepared.abandon()


def refused(state: ActiveCall, error: SpawnError) -> None:
    """The process was refused before its gate."""
    state.refuse(Outcome.REJECTED, Code.SPAWN_REFUSED, Error(error.kind, error.message))


def command_end(state: ActiveCall, end: ProcessEnd) -> BodyEnd:
    """How the command ended, as the pipeline tells it."""
    facts = end.facts
    stopped = end.cause in (EndCause.STOPPED, EndCause.TIMED_OUT)
    ended = Ended.LOST if end.cause is EndCause.KEEPER_LOST else Ended.STOPPED if stopped else Ended.RETURNED
    assert state.command is not None
    code, error = exit_failure(facts, state.command.ok) if ended is Ended.RETURNED else (None, None)
    if ended is Ended.LOST:
        code, error = Code.KEEPER_LOST, Error(ErrorKind.KEEPER_LOST, "the supervisor of the command was lost")
    return BodyEnd(
        ended,
        Reply(exit_value(facts), output_content(facts)),
        error,
        code,
        timed_out=end.cause is EndCause.TIMED_OUT,
        saw_abort=bool(end.signals),
        process=facts,
        still_running=end.still_running,
        enforced=end.enforced,
        missing=end.missing,
    )
