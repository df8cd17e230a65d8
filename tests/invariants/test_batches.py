"""Batches of parallel and exclusive calls, aborted before each step, by the caller or by the host."""

from functools import partial
from typing import Any

import pytest
from invariants.sweeping import SEEDS, host_sweep, sweep
from invariants.world import KINDS, World, calls

from toolrunner import AbortSignal, BatchResult, Decision
from toolrunner.testing import ScriptedApprover

pytestmark = pytest.mark.anyio

MIXES = {
    "three that read": ("reads", "reads", "reads"),
    "two that write": ("writes", "writes twice"),
    "reads, writes, reads": ("reads", "writes", "reads", "reads"),
    "slow readers around a writer": ("reads slowly", "writes", "reads slowly", "reads"),
    "one fails": ("reads", "fails after its change", "writes"),
    "one is stubborn": ("stubborn", "reads", "cleans up"),
    "threads": ("sync", "reads", "sync and stubborn"),
    "one lock": ("has one lock", "has one lock", "reads"),
    "unknown": ("reads", "nobody", "writes"),
}


def world_of(mix: str, **settings: Any) -> World:
    kinds = dict.fromkeys(name for name in MIXES[mix] if name in KINDS)
    world = World([KINDS[name].made(name.replace(" ", "_")) for name in kinds], **settings)
    world.is_one_batch = True
    return world


def batch(mix: str) -> list[str]:
    return [name.replace(" ", "_") for name in MIXES[mix]]


@pytest.mark.parametrize("mode", ["immediate", "drain"])
@pytest.mark.parametrize("mix", MIXES)
async def test_a_batch_aborted_anywhere(mix: str, mode: str) -> None:
    async with world_of(mix, max_parallel=2) as world:

        async def scenario(signal: AbortSignal) -> BatchResult:
            return await world.runner.run_batch(calls(*batch(mix)), signal=signal)

        for seed in range(SEEDS):
            assert await sweep(world, scenario, mode=mode, seed=seed) > 3


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
    async with world_of(mix, ask=True, approver=approver) as world:

        async def scenario(signal: object) -> object:
            approver.one = ScriptedApprover(answers)
            return await world.runner.run_batch(calls(*batch(mix)), signal=signal)  # type: ignore[arg-type]

        for seed in range(SEEDS):
            assert await sweep(world, scenario, seed=seed) > 3  # type: ignore[arg-type]


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("how", ["settle", "detach"])
async def test_a_batch_whose_host_is_cancelled_anywhere(how: str, native: bool) -> None:
    for mix in MIXES:
        async with world_of(mix, on_host_cancel=how) as world:
            assert await host_sweep(world, partial(world.runner.run_batch, calls(*batch(mix))), native=native) > 3


@pytest.mark.parametrize("native", [False, True])
async def test_a_call_whose_host_is_cancelled_anywhere(native: bool) -> None:
    for kind in KINDS.values():
        async with World([kind.made("t")]) as world:
            assert await host_sweep(world, partial(world.runner.run, "t"), native=native) > 3
