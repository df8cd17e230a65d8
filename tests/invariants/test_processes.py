"""Process calls over fake processes, whose release and end are the truth, stopped before each step."""

from collections.abc import Iterator

import anyio
import pytest
from anyio.lowlevel import checkpoint
from invariants.sweeping import SEEDS, host_sweep, sweep
from invariants.world import World, calls

from toolrunner import AbortSignal, BatchResult, ToolResult
from toolrunner.process import SpawnError
from toolrunner.process.ending import SpawnErrorKind
from toolrunner.results import Ended, Outcome
from toolrunner.testing import FakeCommand, FakeProcess

pytestmark = pytest.mark.anyio

COMMANDS = {
    "ends well": FakeCommand(stdout="out"),
    "fails": FakeCommand(exit_code=3),
    "runs on": FakeCommand(exit_code=None, stdout="so far"),
    "ignores TERM": FakeCommand(exit_code=None, ignores_term=True),
    "cannot be prepared": FakeCommand(refused=SpawnError(SpawnErrorKind.SETUP, "no room")),
    "cannot be run": FakeCommand(spawn_error=SpawnError(SpawnErrorKind.NOT_FOUND, "no such command")),
}


def lies(world: World, result: ToolResult, process: FakeProcess | None) -> Iterator[str]:
    """What the result says against what the process did."""
    released = process is not None and process.released
    if result.started != released:
        yield f"started={result.started}, but released={released}"
    if process is None or not released:
        return
    if (result.ended is Ended.STOPPED) != bool(process.signals):
        yield f"ended={result.ended}, but its signals were {process.signals}"
    if result.stop is not None and result.stop.signals != tuple(process.signals):
        yield f"signals={result.stop.signals}, but they were {process.signals}"
    if result.outcome is Outcome.SUCCEEDED and process.signals:
        yield "it succeeded although it was stopped"
    if result.process is None or result.process.stdout != process.command.stdout:
        yield "its output is not in the result"


def checked(world: World, results: BatchResult) -> BatchResult:
    by_pid = {process.pid: process for process in world.processes.processes}
    left = dict(by_pid)
    for result in results:
        if result.name == "command_" and result.process is not None:
            process = left.pop(result.process.pid, None) if result.process.pid is not None else None
            assert list(lies(world, result, process)) == []
        elif result.name == "command_":
            assert not result.started, result.summary()
    assert [process for process in left.values() if process.released] == [], "somebody was released and is told of nowhere"
    world.processes.processes.clear()
    return results


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_process_aborted_anywhere(command: str) -> None:
    async with World([], command=COMMANDS[command], kill_after=0.001) as world:

        async def scenario(signal: AbortSignal) -> BatchResult:
            batch = world.runner.start_batch(calls("command_", "command_"), signal=signal)

            async def end_them() -> None:
                while not batch._run.done.is_set():
                    await anyio.sleep(0.0001)
                    for process in world.processes.processes:
                        process.exit(0)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(end_them)
            return checked(world, await batch)

        for seed in range(SEEDS):
            assert await sweep(world, scenario, seed=seed) > 3


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("command", ["ends well", "ignores TERM", "cannot be run"])
async def test_a_process_whose_host_is_cancelled_anywhere(command: str, native: bool) -> None:
    async with World([], command=COMMANDS[command], kill_after=0.001) as world:

        async def scenario() -> None:
            async with anyio.create_task_group() as tasks:

                async def end_it() -> None:
                    for _ in range(12):
                        await checkpoint()
                    for process in world.processes.processes:
                        process.exit(0)

                tasks.start_soon(end_it)
                await world.runner.run("command_")

        assert await host_sweep(world, scenario, native=native) > 3
