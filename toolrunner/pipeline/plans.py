"""From a Command to the plan that the supervisor is given: for a call, with what was decided for it, and for a job. Pure."""

from pathlib import Path

from toolrunner.pipeline.services import Limits
from toolrunner.pipeline.state import ActiveCall
from toolrunner.process import LaunchPlan, Leftovers, Stdin, WindowSize
from toolrunner.tools import Command


def launch_plan(state: ActiveCall, limits: Limits) -> LaunchPlan:
    """What the supervisor is to start for this call."""
    command = state.command
    assert command is not None
    assert state.registration is not None
    tool = state.registration.tool
    grace = next((one for one in (command.kill_after, tool.kill_after) if one is not None), limits.kill_after)
    timeout = next((one for one in (state.call.timeout, command.timeout, tool.timeout) if one is not None), None)
    return _plan(command, limits, state.environment.cwd or None, grace, timeout)


def job_plan(command: Command, limits: Limits) -> LaunchPlan:
    """The same for a job: its times are its own, because no call waits for it."""
    grace = command.kill_after if command.kill_after is not None else limits.kill_after
    return _plan(command, limits, None if command.cwd is None else str(command.cwd), grace, command.timeout)


def _plan(command: Command, limits: Limits, cwd: str | None, grace: float, timeout: float | None) -> LaunchPlan:
    return LaunchPlan(
        argv=tuple(command.argv),
        env=dict(command.env),
        cwd=cwd,
        stdin=_stdin(command),
        output_limit=command.output_limit,
        spill_dir=limits.spill_dir,
        kill_after=grace,
        timeout=timeout,
        tty=command.tty if isinstance(command.tty, WindowSize) else WindowSize() if command.tty else None,
        leftovers=Leftovers(command.leftovers),
    )


def _stdin(command: Command) -> Stdin | bytes | Path:
    match command.stdin:
        case None:
            return Stdin.NULL
        case Stdin() | bytes() | Path():
            return command.stdin
        case str():  # after Stdin, whose members are strings too
            return command.stdin.encode()
