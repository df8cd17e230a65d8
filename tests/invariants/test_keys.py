"""Calls with an idempotency key, aborted before each step and made again: at most one of them changes anything."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from invariants.sweeping import SEEDS, sweep
from invariants.world import KINDS, World

from toolrunner import AbortSignal, ToolCall, ToolResult
from toolrunner.facts import EffectState
from toolrunner.results import Outcome

pytestmark = pytest.mark.anyio


def once(results: Sequence[ToolResult], made: int) -> None:
    """What must be true of all calls with one key together."""
    assert made <= 1
    assert sum(one.started and not one.replayed and one.outcome is Outcome.SUCCEEDED for one in results) <= 1
    for earlier, later in pairwise(results):
        if earlier.started and earlier.effects.state not in (EffectState.NONE, EffectState.REVERTED):
            assert later.replayed or not later.started, (earlier.summary(), later.summary())


@pytest.mark.parametrize("kind", ["writes", "declares nothing", "stubborn", "fails after its change", "sync", "reads", "fails"])
async def test_a_call_with_a_key_aborted_anywhere_and_made_again(kind: str) -> None:
    async with World([KINDS[kind].made("t")]) as world:
        number = 0

        async def scenario(signal: AbortSignal) -> list[ToolResult]:
            nonlocal number
            number += 1
            call = ToolCall("t", {}, idempotency_key=f"k{number}")
            results = [await world.runner.run(call, signal=signal)]
            world.caller = None  # the next two are made by somebody who does not abort
            results += [await world.runner.run(call), await world.runner.run(call)]
            once(results, sum(bool(entry.made) for entry in world.tools["t"].entries))
            return results

        for seed in range(SEEDS):
            assert await sweep(world, scenario, seed=seed) > 3


@pytest.mark.parametrize("kind", ["writes", "declares nothing", "fails after its change", "sync", "reads"])
async def test_a_batch_with_one_key_twice_aborted_anywhere(kind: str) -> None:
    tool = KINDS[kind].made("t")
    async with World([tool]) as world:
        number = 0

        async def scenario(signal: AbortSignal) -> Sequence[ToolResult]:
            nonlocal number
            number += 1
            batch: Any = [ToolCall("t", {}, idempotency_key=f"k{number}") for _ in range(3)]
            results = await world.runner.run_batch(batch, signal=signal)
            once(results, sum(bool(entry.made) for entry in tool.entries))
            return results

        for seed in range(SEEDS):
            assert await sweep(world, scenario, seed=seed) > 3
