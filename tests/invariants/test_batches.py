"""Batches of parallel and exclusive calls, aborted before each step, by the caller or by the host."""

from typing import Any

import pytest
from invariants.sweeping import SEEDS, host_sweep, sweep
from invariants.world import KINDS, World, calls

from toolrunner import Decision
from toolrunner.testing import ScriptedApprover

pytestmark = pytest.mark.anyio

MIXES = {
    "three that read": ("reads", "reads", "reads"),
    "two that write": ("writes", "writes twice"),
    "reads, writes, reads": ("reads", "writes", "reads", "reads"),
    "one fails": ("reads", "fails after its change", "writes"),
    "one is stubborn": ("stubborn", "reads", "cleans up"),
    "threads": ("sync", "reads", "sync and stubborn"),
    "one lock": ("has one lock", "has one lock", "reads"),
    "unknown": ("reads", "nobody", "writes"),
}
EVERY = dict.fromkeys(name for names in MIXES.values() for name in names if name in KINDS)


def world_of(**settings: Any) -> World:
    world = World([KINDS[name].made(name.replace(" ", "_").replace(",", "")) for name in EVERY], **settings)
    world.is_one_batch = True
    return world


def batch(mix: str) -> list[str]:
    return [name.replace(" ", "_").replace(",", "") for name in MIXES[mix]]


@pytest.mark.parametrize("mode", ["immediate", "drain"])
@pytest.mark.parametrize("mix", MIXES)
async def test_a_batch_aborted_anywhere(mix: str, mode: str) -> None:
    async with world_of(max_parallel=2) as world:
        for seed in range(SEEDS):
            rounds = await sweep(
                world, lambda signal: world.runner.run_batch(calls(*batch(mix)), signal=signal), mode=mode, seed=seed
            )
            assert rounds > 3


@pytest.mark.parametrize("mix", ["reads, writes, reads", "one is stubborn", "threads"])
@pytest.mark.parametrize(
    "answers",
    [[], [Decision.deny("no")], [Decision.allow(), Decision.stop("enough")], [OSError("gone")]],
    ids=["all", "not the first", "stop at the second", "nobody there"],
)
async def test_a_batch_that_is_asked_about_aborted_anywhere(mix: str, answers: list[Decision]) -> None:
    class Approver:
        async def decide(self, request: object, signal: object) -> Decision | None:
            return await self.one.decide(request, signal)  # type: ignore[arg-type]

        one = ScriptedApprover()

    approver = Approver()
    async with world_of(ask=True, approver=approver) as world:

        async def scenario(signal: object) -> object:
            approver.one = ScriptedApprover(answers)
            return await world.runner.run_batch(calls(*batch(mix)), signal=signal)  # type: ignore[arg-type]

        for seed in range(SEEDS):
            assert await sweep(world, scenario, seed=seed) > 3  # type: ignore[arg-type]


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("how", ["settle", "detach"])
@pytest.mark.parametrize("mix", MIXES)
async def test_a_batch_whose_host_is_cancelled_anywhere(mix: str, how: str, native: bool) -> None:
    async with world_of(on_host_cancel=how) as world:
        assert await host_sweep(world, lambda: world.runner.run_batch(calls(*batch(mix))), native=native) > 3


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_whose_host_is_cancelled_anywhere(kind: str, native: bool) -> None:
    async with World([KINDS[kind].made("t")]) as world:
        assert await host_sweep(world, lambda: world.runner.run("t"), native=native) > 3
