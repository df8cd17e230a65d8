"""`async with Runner()` itself: aborted, and its host cancelled, before each step of entering, running and leaving."""

from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from invariants.checking import violations, what_stays_behind
from invariants.world import BOUND, KINDS, World, calls

from toolrunner import AbortSignal
from toolrunner.testing import FakeCommand, abort_sweep, cancel_sweep

pytestmark = pytest.mark.anyio

NAMES = {
    "one": ["writes"],
    "stubborn": ["stubborn", "reads"],
    "threads": ["sync_and_stubborn", "writes"],
    "a process": ["command_", "reads"],
    "children and clean-up": ["cleans_up", "shields"],
}


def world_of(what: str) -> World:
    tools = [KINDS[name].made(name.replace(" ", "_")) for name in KINDS if name.replace(" ", "_") in NAMES[what]]
    return World(tools, command=FakeCommand(exit_code=None, ignores_term=True), kill_after=0.01)


def look(world: World, when: str) -> None:
    """The runner is closed: everything has its result, and nothing is left."""
    found = [*violations(world, None)]
    if world.runner._services is not None:
        assert world.runner._closed, when
        assert world.runner._services.root.live == (), when
        found += what_stays_behind(world)
    assert not found, f"{when}: {found}"


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("what", NAMES)
async def test_the_host_is_cancelled_anywhere_between_opening_and_having_closed(what: str, native: bool) -> None:
    worlds: list[World] = []

    async def scenario() -> None:
        worlds.append(world_of(what))
        async with worlds[-1] as world:
            await checkpoint()
            batch = world.runner.start_batch(calls(*NAMES[what]))
            for _ in range(6):
                await checkpoint()
            for process in world.processes.processes:
                process.exit()
            await batch

    with anyio.fail_after(BOUND):
        async for one in cancel_sweep(scenario, native=native):
            if worlds:
                look(worlds[-1], f"cancelled before step {one.step}, native {native}")


@pytest.mark.parametrize("what", NAMES)
async def test_a_runner_closed_over_a_running_batch_that_is_aborted_anywhere(what: str) -> None:
    async def scenario(signal: AbortSignal) -> Any:
        async with world_of(what) as world:
            batch = world.runner.start_batch(calls(*NAMES[what]), signal=signal)
            for _ in range(3):
                await checkpoint()
        return world, await batch

    with anyio.fail_after(BOUND):
        async for one in abort_sweep(scenario):
            world, results = one.value
            look(world, f"aborted before step {one.step}")
            assert [result.name for result in results] == NAMES[what]
            assert {result.stop.source for result in results if result.stop is not None} <= {"caller", "shutdown"}
