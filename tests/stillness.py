"""How a test on one loop knows that nothing moves any more, and how it makes hours pass at once.

State: none here; a VirtualLoop counts its own time.
"""

import asyncio
import selectors
from typing import final

import anyio
import sniffio

TURNS = 5
"""Turns of the loop in which no task moves: a callback is no task, and one event may set off a few, one after the other."""


async def all_blocked() -> None:
    """Wait until every other task waits for something: `anyio.wait_all_tasks_blocked`, which naps for 0.1 s per look on asyncio.

    The nap would be most of the time of many tests, and it would hide those that need a while and not a fact.
    """
    if sniffio.current_async_library() == "trio":
        await anyio.wait_all_tasks_blocked()
        return
    me = asyncio.current_task()
    still = 0
    while still < TURNS:
        await asyncio.sleep(0)
        still = 0 if any(_moves(task) for task in asyncio.all_tasks() if task is not me) else still + 1


async def quiet() -> None:
    """Wait until nothing moves any more, callbacks included: whatever has not happened by then does not happen by itself."""
    for _ in range(TURNS):
        await all_blocked()


def _moves(task: asyncio.Task[object]) -> bool:
    waiter: asyncio.Future[object] | None = getattr(task, "_fut_waiter", None)  # what anyio looks at; asyncio has no public word
    return waiter is None or waiter.done()


@final
class VirtualLoop(asyncio.SelectorEventLoop):
    """trio's MockClock(autojump_threshold=0) for asyncio: time stands still while something runs, then the next timer is due.

    Not for tests with threads or processes: while they work, the loop is idle.
    """

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        self._now += seconds


@final
class _Jumping(selectors.DefaultSelector):
    """A wait with an end is over at once, as if it had been waited for."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout is not None else None)
        if timeout and not ready:
            self._loop.jump(timeout)
        return ready
