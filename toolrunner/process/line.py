"""The line to one keeper: orders to it, messages from it, and until when it must have said something.

State: that bound, and the wait for a message while there is one. Orders are synchronous and never wait.
"""

import math
import socket
import time
from typing import final

import anyio

from toolrunner.process.keeping.messages import MESSAGE_LIMIT
from toolrunner.process.link import Link

KEEPER_BOUND = 1.0
"""Seconds in which a keeper must answer an order, or begin the ladder after its deadline. Then the warden takes over."""

HEARTBEAT = 5.0
"""Seconds between looks at the warden while a process runs: something may have stopped it together with its keeper."""

LATE = 0.25
"""A timer that fires this many seconds late means that the host's own loop was stuck: the keeper gets another bound."""


@final
class KeeperLine:
    """One control socket. `bound` is monotonic time, inf while nothing is expected."""

    def __init__(self, control: socket.socket, link: Link) -> None:
        self.control, self.link = control, link
        self.bound = math.inf
        self._extended = False
        self._scope: anyio.CancelScope | None = None  # of the wait for a message, while there is one

    def send(self, order: bytes) -> bool:
        """Give an order. False when the keeper is gone; whoever waits finds out what that means."""
        try:
            self.control.send(order)
        except OSError:
            return False
        return True

    def receive(self) -> bytes | None:
        """A message, b"" when the keeper is gone, None when there is none yet."""
        for _ in range(2):
            try:
                return self.control.recv(MESSAGE_LIMIT)
            except BlockingIOError:
                return None
            except ConnectionResetError:
                # The keeper left with an order of ours unread. The kernel says so once, and before the last message it sent.
                continue
            except OSError:
                break
        return b""

    def expect(self, bound: float) -> None:
        """It must say something until then. Wakes the waiter into the new bound."""
        self.bound = bound
        if self._scope is not None:
            self._scope.deadline = self._loop_time(bound)

    def calm(self) -> None:
        """Nothing is expected of it any more."""
        self.bound, self._extended = math.inf, False

    @staticmethod
    def _loop_time(monotonic: float) -> float:
        """The event loop's clock may have another origin (trio's has)."""
        return math.inf if monotonic == math.inf else anyio.current_time() + monotonic - time.monotonic()

    async def next_message(self) -> bool:
        """Wait for one. False when the keeper should have said something and did not."""
        with anyio.CancelScope(deadline=self._loop_time(min(self.bound, time.monotonic() + HEARTBEAT))) as scope:
            self._scope = scope
            try:
                await anyio.wait_readable(self.control)
            finally:
                self._scope = None
        if not scope.cancelled_caught:
            return True
        late = time.monotonic() - self.bound
        if late < 0:
            self.link.wake()
            return True
        if not self._extended:
            # Once more: our own loop may have been stuck, or something has stopped warden and keeper.
            self._extended = True
            self.link.wake()
            self.bound = time.monotonic() + (KEEPER_BOUND if late > LATE else KEEPER_BOUND / 2)
            return True
        return False

    def close(self) -> None:
        """Hang up; a keeper that is still there reads EOF and sweeps."""
        self.control.close()
