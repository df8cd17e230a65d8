"""Gate: the place in a tool's body where a test decides what happens next.

State: who has arrived and whether it is open; changed by the bodies that arrive and by the test. Bodies may be in threads.
"""

import threading
from typing import final

import anyio

from toolrunner.loops import poster

BLOCKED_AT_MOST = 30.0
"""Seconds that a thread waits at a gate nobody opens; then the test is wrong, and a failure is better than a thread for ever."""


@final
class Gate:
    """Bodies wait at it, the test learns that they are there and opens it: a race is reached without a single sleep.

    `await gate.wait()` in async bodies and hooks, `gate.wait_blocking()` in sync bodies, `await gate.reached()` in the test,
    then whatever is to happen while the body is there, then `gate.open()`. Make it on the event loop of the test.
    """

    def __init__(self) -> None:
        self._post = poster()
        self._opened = anyio.Event()
        self._opened_for_threads = threading.Event()
        self._changed = anyio.Event()
        self.arrivals = 0
        """How often somebody has arrived, also after it was opened."""
        self.waiting = 0
        """How many wait at it now."""

    async def wait(self) -> None:
        """Arrive, and wait until it is open. A cancellation ends the wait as it ends any other."""
        self._count(+1)
        try:
            await self._opened.wait()
        finally:
            self._count(-1)

    def wait_blocking(self, seconds: float = BLOCKED_AT_MOST) -> None:
        """The same in a thread. Raises TimeoutError after `seconds`, which is for a test that went wrong."""
        self._post(lambda: self._count(+1))
        try:
            if not self._opened_for_threads.wait(seconds):
                raise TimeoutError(f"nobody opened the gate within {seconds:g} s")
        finally:
            self._post(lambda: self._count(-1))

    async def reached(self, times: int = 1) -> None:
        """Wait until somebody has arrived for the `times`-th time."""
        while self.arrivals < times:
            await self._changed.wait()

    def open(self) -> None:
        """Let everybody through, now and later. On the loop only."""
        self._opened.set()
        self._opened_for_threads.set()

    @property
    def is_open(self) -> bool:
        """Whether it lets everybody through."""
        return self._opened_for_threads.is_set()

    def _count(self, change: int) -> None:
        self.waiting += change
        if change > 0:
            self.arrivals += 1
            self._changed.set()
            self._changed = anyio.Event()
