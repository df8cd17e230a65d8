"""A sweep over one World, with every invariant asked after each round."""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
from anyio.lowlevel import current_token
from invariants.checking import check
from invariants.world import BOUND, World

from toolrunner import AbortSignal, ToolResult
from toolrunner.testing import abort_sweep, cancel_sweep

SEEDS = 2
"""Orders of trio's ticks that are tried. asyncio has one order only."""

Scenario = Callable[[AbortSignal], Awaitable[ToolResult | Sequence[ToolResult]]]


async def sweep(world: World, scenario: Scenario, *, seed: int = 0, **options: Any) -> int:
    """Abort `scenario` before each step in turn; returns how many rounds that took."""
    if seed and hasattr(current_token().native_token, "call_soon"):
        return BOUNDLESS

    async def watched(signal: AbortSignal) -> ToolResult | Sequence[ToolResult]:
        world.caller = signal
        try:
            return await scenario(signal)
        finally:
            world.caller = None

    rounds = 0
    with anyio.fail_after(BOUND):
        async with contextlib.aclosing(abort_sweep(watched, seed=seed, **options)) as sweep:
            async for one in sweep:
                results = [one.value] if isinstance(one.value, ToolResult) else list(one.value)
                await checked(world, results, f"aborted before step {one.step} (seed {seed}, {options})")
                rounds += 1
    return rounds


BOUNDLESS = 1_000_000
"""Instead of a number of rounds, where there is nothing more to try."""


async def host_sweep(world: World, scenario: Callable[[], Awaitable[Any]], *, native: bool, seed: int = 0) -> int:
    """Cancel the host that runs `scenario` before each step in turn."""
    rounds = 0
    with anyio.fail_after(BOUND):
        async with contextlib.aclosing(cancel_sweep(scenario, native=native, seed=seed)) as sweep:
            async for one in sweep:
                await checked(world, None, f"host cancelled before step {one.step} (native {native}, seed {seed})")
                rounds += 1
    return rounds


async def checked(world: World, results: Sequence[ToolResult] | None, when: str) -> None:
    try:
        await check(world, results)
    except AssertionError as error:
        said = [one.result.summary() for one in world.recorder.of("call/settled")]
        raise AssertionError(f"{when}: {said}{error}") from None
    world.forget()
