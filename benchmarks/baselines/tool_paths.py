"""Tool paths of agent frameworks: a turn in which a scripted model asks for calls of a no-op async tool. No state.

The loop around the calls is the framework's own business, so it is taken off: a trial is the time of a turn with CALLS calls less
that of a turn with one, per call. toolrunner is measured in the same way, as a batch.
Neither compares like with like: what is taken off is work that a framework does once per turn and toolrunner does not do at all
(its loop, its history), and in what is left toolrunner records each call, watches for a stop and says what became of it, which
they do not. So the whole turn with one call is measured as well, and both are shown.
"""

import time
from collections.abc import Awaitable, Callable

from benchmarks.measure import Trial

CALLS = 20

Turn = Callable[[int], Awaitable[object]]
"""Has so many calls made and waits for all of their results."""


async def per_call(turn: Turn) -> Trial:
    """Milliseconds per call."""
    one = await _timed(turn, 1)
    return Trial((await _timed(turn, CALLS) - one) / (CALLS - 1) * 1000)


async def of_one(turn: Turn) -> Trial:
    """Milliseconds of a whole turn with one call, the loop around it included."""
    return Trial(await _timed(turn, 1) * 1000)


async def _timed(turn: Turn, calls: int) -> float:
    began = time.perf_counter()
    await turn(calls)
    return time.perf_counter() - began
