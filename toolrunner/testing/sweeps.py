"""Sweeps: run a scenario again and again, each time stopping it one step later, until it ends before the stop comes.

No state: each round makes everything anew. They find the windows that nobody thought of; the test says what must be true in all.
"""

import contextlib
import functools
import itertools
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

from toolrunner.abort import AbortController, AbortSignal
from toolrunner.facts import AbortMode
from toolrunner.loops import current_native_task, native_loop
from toolrunner.testing.steps import before_step

T = TypeVar("T")

MAX_STEPS = 5_000
"""Rounds of one sweep at the most. A scenario that does not end by then never will, or belongs into smaller pieces."""


@dataclass(frozen=True, slots=True)
class Round(Generic[T]):
    """One round of a sweep. The last one has `fired` False: the scenario ended before the stop came.

    `step` is the number of the step before which the stop came. `value` is what the scenario returned, None if it was cancelled.
    """

    step: int
    fired: bool
    value: T
    cancelled: bool = field(default=False)


async def abort_sweep(
    scenario: Callable[[AbortSignal], Awaitable[T]],
    *,
    mode: AbortMode | str = AbortMode.IMMEDIATE,
    seed: int = 0,
    stride: int = 1,
) -> AsyncGenerator[Round[T]]:
    """Abort the signal that `scenario` was given before its 1st, 2nd, 3rd, ... step, in a round of its own for each.

    Steps of all tasks count (see `before_step`), those of the runner above all. `stride` leaves out all but every so many steps.
    A scenario with threads in it takes a step more or less at times; its rounds are as valid, but not the same each time.

        async for round in abort_sweep(lambda signal: runner.run("write", {}, signal=signal)):
            assert round.value.started == (round.value.code is not Code.ABORTED_BEFORE_DISPATCH)

    Raises:
        RuntimeError: the scenario did not end within `MAX_STEPS` rounds.
    """
    for step in itertools.count(1, stride):
        controller = AbortController()

        abort = functools.partial(controller.abort, "abort sweep", mode=mode)
        with before_step(step, abort, seed=seed) as steps:
            value = await _in_own_task(functools.partial(scenario, controller.signal))
        yield Round(step, steps.fired, value)
        if not steps.fired:
            return
        _bound(step)


async def cancel_sweep(
    scenario: Callable[[], Awaitable[T]], *, native: bool = False, seed: int = 0, stride: int = 1
) -> AsyncGenerator[Round[T | None]]:
    """Cancel the task that runs `scenario` before its 1st, 2nd, 3rd, ... step: by its scope, or natively.

    `native` is asyncio's `task.cancel()`, which goes through every shield; trio has no such thing, and there it is the scope's.
    """
    for step in itertools.count(1, stride):
        fired, cancelled, value = await _cancelled_at(scenario, step, native=native, seed=seed)
        yield Round(step, fired, value, cancelled)
        if not fired:
            return
        _bound(step)


async def _cancelled_at(
    scenario: Callable[[], Awaitable[T]], step: int, *, native: bool, seed: int
) -> tuple[bool, bool, T | None]:
    values: list[T] = []
    cancels: list[Callable[[], object]] = []

    async def host() -> None:
        with anyio.CancelScope() as scope:
            task = current_native_task()
            cancels.append(task.cancel if native and hasattr(task, "cancel") else scope.cancel)
            values.append(await scenario())

    def cancel() -> None:
        if cancels:  # else the step is the host's own first one
            cancels[0]()

    with before_step(step, cancel, seed=seed) as steps, contextlib.suppress(*_native_cancelled()):
        await _in_own_task(host)
    return steps.fired, not values, values[0] if values else None


async def _in_own_task(fn: Callable[[], Awaitable[T]]) -> T:
    """Run `fn` in a task of its own, so that a native cancel of the scenario is not one of the test."""
    if not hasattr(current_native_task(), "cancel"):
        return await fn()

    async def own() -> T:
        return await fn()

    value: T = await sys.modules["asyncio"].get_running_loop().create_task(own())
    return value


def _native_cancelled() -> tuple[type[BaseException], ...]:
    """What the host's task ends by when it was cancelled natively. trio's scope lets nothing out."""
    loop = native_loop()
    return (anyio.get_cancelled_exc_class(),) if hasattr(loop, "create_task") else ()


def _bound(step: int) -> None:
    if step > MAX_STEPS:
        raise RuntimeError(f"the scenario still runs after {MAX_STEPS} steps; does it wait for something that never comes?")
