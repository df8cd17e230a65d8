"""Steps of the event loop, counted, so that something can happen before exactly the n-th of them.

A step is one resumption of one task, whoever's it is: the caller's, a body's, a hook's, a batch's. Between two steps nothing of
async code can change, so "before each step" is every moment at which an abort can come from the loop itself. (Another thread
can be in the middle of a step; gates in bodies reach those.) State: the count of the one `StepCount` that is active.

asyncio: the loop's two ways to take a callback are wrapped, so its other callbacks count too. trio: an instrument, with the
scheduler's own dice fixed while it counts, because trio shuffles the tasks of a tick on purpose.
"""

import contextlib
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any, final

from toolrunner.loops import native_loop

_SCHEDULERS = ("call_soon", "call_soon_threadsafe")


@final
class StepCount:
    """Counts steps, and calls `fire` before step number `at` (from 1; None: never)."""

    __slots__ = ("_fire", "at", "count", "error", "fired")

    def __init__(self, at: int | None, fire: Callable[[], object]) -> None:
        self._fire = fire
        self.at = at
        self.count = 0
        """Steps so far."""
        self.fired = False
        """Whether step `at` was reached."""
        self.error: BaseException | None = None

    def step(self) -> None:
        """A task is about to be resumed."""
        self.count += 1
        if self.count != self.at or self.fired:
            return
        self.fired = True
        try:
            self._fire()
        except BaseException as error:  # noqa: BLE001 - kept for the test: in the loop's own machinery it would be lost
            self.error = error


@contextlib.contextmanager
def before_step(at: int | None, fire: Callable[[], object], *, seed: int = 0) -> Iterator[StepCount]:
    """Call `fire`, synchronously, before the `at`-th step of any task of this loop inside the block.

    Use it in a coroutine. `seed` picks the order in which trio runs the tasks of one tick; asyncio's order is fixed.
    """
    steps = StepCount(at, fire)
    loop = native_loop()
    with _asyncio_steps(loop, steps) if hasattr(loop, "call_soon") else _trio_steps(steps, seed):
        yield steps
    if steps.error is not None:
        raise steps.error


@contextlib.contextmanager
def _asyncio_steps(loop: Any, steps: StepCount) -> Iterator[None]:
    """Every step of a task, also the wake-up of one that waits, comes to the loop through one of these two methods.

    Not a task factory: it sees the tasks that are made by `loop.create_task`, and there are others. A timer's callback counts
    with the step that it brings about.
    """
    active = [True]

    def counted(schedule: Callable[..., Any]) -> Callable[..., Any]:
        def schedule_counted(callback: Callable[..., Any], *args: Any, **options: Any) -> Any:
            def run(*args: Any) -> Any:
                if active:
                    steps.step()
                return callback(*args)

            return schedule(run, *args, **options)

        return schedule_counted

    before = {name: vars(loop).get(name) for name in _SCHEDULERS}
    for name in _SCHEDULERS:
        setattr(loop, name, counted(getattr(loop, name)))
    try:
        yield
    finally:
        active.clear()
        for name, own in before.items():
            if own is None:
                delattr(loop, name)
            else:
                setattr(loop, name, own)


@contextlib.contextmanager
def _trio_steps(steps: StepCount, seed: int) -> Iterator[None]:
    trio: Any = sys.modules["trio"]  # running under it, so it is loaded; it is no dependency of ours

    class Counting(trio.abc.Instrument):  # type: ignore[misc]
        def before_task_step(self, _: object) -> None:
            steps.step()

    instrument = Counting()
    with _fixed_dice(sys.modules["trio._core._run"], seed):
        trio.lowlevel.add_instrument(instrument)
        try:
            yield
        finally:
            trio.lowlevel.remove_instrument(instrument)


@contextlib.contextmanager
def _fixed_dice(scheduler: Any, seed: int) -> Iterator[None]:
    """The two names that trio's own plugin for hypothesis sets; there is no public way. Without them, order is not fixed."""
    dice: random.Random | None = getattr(scheduler, "_r", None)
    sorts = getattr(scheduler, "_ALLOW_DETERMINISTIC_SCHEDULING", None)
    if dice is None or sorts is None:
        yield
        return
    state = dice.getstate()
    dice.seed(seed)
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True  # noqa: SLF001
    try:
        yield
    finally:
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = sorts  # noqa: SLF001
        dice.setstate(state)
