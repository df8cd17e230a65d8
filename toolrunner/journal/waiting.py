"""Waiting: how a task learns what the writer's thread did, and how that thread sleeps until there is something to do.

State: a `Sleeper`'s reason, changed under the lock of whoever owns it. Each step here lies between a record and the act that
waits for it, and runs right after a sleep, with cold caches; so it is few steps, and a future where a library has one.
"""

import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple, final

from toolrunner.loops import Post

Happened = Callable[[], object]
"""Wakes one task; called on its loop."""


@final
class Waiter(NamedTuple):
    """Wants to know that the record of this number is durable, or never will be."""

    seq: int
    happened: Happened
    post: Post


def waiting(native: Any) -> tuple[Happened, Awaitable[object]]:
    """What wakes a task of the loop `native`, and what that task awaits. The task may have been cancelled meanwhile."""
    if hasattr(native, "create_future"):
        future = native.create_future()
        return partial(_resolve, future), future
    event = sys.modules["trio"].Event()
    return event.set, event.wait()


def _resolve(future: Any) -> None:
    if not future.done():  # else its task was cancelled
        future.set_result(None)


def tell(waiters: Sequence[Waiter]) -> None:
    """Wake them, with one callback for each loop."""
    while waiters:
        post = waiters[0].post
        ready = [one.happened for one in waiters if one.post == post]
        try:
            post(ready[0] if len(ready) == 1 else partial(_call, ready))
        except RuntimeError:  # the loop is closed: nobody waits there any more
            pass
        waiters = [one for one in waiters if one.post != post] if len(ready) < len(waiters) else ()


def _call(ready: list[Happened]) -> None:
    for happened in ready:
        happened()


@final
class Until(StrEnum):
    """What ends a sleep before its time."""

    NOTHING = "nothing"
    """It is over, or there is none."""
    WANTED = "wanted"
    """Somebody waits for a record."""
    ANYTHING = "anything"
    """A record came."""


@final
class Sleeper:
    """One thread that sleeps, and others that wake it. A bare lock is what it sleeps on: a `Condition` makes a new one each time.

    Invariant: the lock is taken, unless somebody ended a sleep and the thread has not seen it yet.
    """

    __slots__ = ("_gate", "until")

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._gate.acquire()
        self.until = Until.NOTHING

    def wake(self) -> None:
        """Under the owner's lock: end the sleep, if there is one."""
        if self.until is not Until.NOTHING:
            self.until = Until.NOTHING
            self._gate.release()

    def sleep(self, seconds: float | None, lock: threading.Lock) -> bool:
        """Without the owner's lock, after `until` was set under it. False: nobody ended it, the time did."""
        if self._gate.acquire(timeout=-1 if seconds is None else seconds):
            return True
        with lock:
            if self.until is Until.NOTHING:  # ended between the end of the time and here
                return self._gate.acquire()
            self.until = Until.NOTHING
            return False
