"""Stopping: what a contender is that starts commands and stops them with all they started, and one measured stop.

No state. The clock runs from the decision to stop until the contender has said that it is over *and* the last victim is dead. A
victim that still lives SETTLE seconds after the answer counts as left; the clock then stopped at the answer. Whoever is left is
ended here, so that the next trial starts on a clean machine.
"""

import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import anyio

from benchmarks.measure import Trial
from benchmarks.victims.scene import Scene
from benchmarks.victims.shapes import Argv, Shape

SETTLE = 0.25
"""Seconds after the answer in which whoever was killed has died, on any machine."""

HANG = 2.0
"""Seconds in which a contender must give its answer, on top of a grace period; then the trial counts as hung."""


class Running(Protocol):
    """Commands that a contender started."""

    async def stop(self) -> bool:
        """Stop them. Returns when the contender takes them to be over; True if it also says that nothing of them is left."""


class Stopper(Protocol):
    """A way to start and stop commands. Leaving the block must not need the victims' death: they are dead by then."""

    @property
    def name(self) -> str:
        """How the report calls it."""

    def start(self, commands: Sequence[Argv]) -> AbstractAsyncContextManager[Running]:
        """Start commands, to be stopped together."""


async def stop_once(stopper: Stopper, shape: Shape, *, allowance: float = 0.0) -> Trial:
    """One trial, in milliseconds. `allowance` is a grace period in seconds that must pass by itself; it is not counted."""
    with Scene(shape) as scene:
        async with stopper.start(scene.commands) as running:
            try:
                await scene.born()
                return await _stopped(running, scene, allowance)
            finally:
                scene.close()  # before the block is left: one that missed somebody would wait for him for ever


async def _stopped(running: Running, scene: Scene, allowance: float) -> Trial:
    claims = False
    began = time.perf_counter()
    with anyio.move_on_after(HANG + allowance) as scope:
        claims = await running.stop()
    answered = time.perf_counter()
    # The contender's claim is about now, so it is looked at now; dying takes those a moment who nobody claimed to be dead.
    alive_now = scene.alive() if claims else 0
    alive = scene.alive(SETTLE)
    over = answered if alive else time.perf_counter()
    left = scene.left(SETTLE)
    return Trial((over - began - allowance) * 1000, left, hung=scope.cancelled_caught, lied=claims and (alive_now or left) > 0)
