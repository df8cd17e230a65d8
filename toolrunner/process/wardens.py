"""The wardens of this host process: one per interpreter, shared by all supervisors, ended when the last one leaves.

State: `_links`, `_users`, `_losses`, changed only under `_lock`, because supervisors in several threads share it. In a forked
child everything is dropped: its parent's warden is none of its own.
"""

import os
import threading
import time
from collections import deque
from typing import final

from toolrunner.process.ending import SpawnErrorKind, SpawnRefused
from toolrunner.process.link import Link
from toolrunner.process.standing import Standing

MAX_LOSSES = 3
LOSS_WINDOW = 60.0
"""A warden lost this often in this many seconds is not started again: something kills it, and calls would die one by one."""


@final
class Wardens:
    """The registry. `enter` and `leave` count its users."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._links: dict[str, Link] = {}
        self._retired: list[Link] = []  # their host changed; their calls go on
        self._losses: deque[float] = deque()

    def enter(self) -> None:
        """One more supervisor."""
        with self._lock:
            self._users += 1

    def leave(self) -> list[Link]:
        """One less; the caller ends the links it is given."""
        with self._lock:
            self._users -= 1
            if self._users:
                return []
            ended = [*self._links.values(), *self._retired]
            self._links, self._retired = {}, []
            return ended

    def has(self, python: str, standing: Standing) -> bool:
        """Whether there is a living warden that is what its host was at this look."""
        with self._lock:
            link = self._links.get(python)
            return link is not None and link.standing == standing.fixed and link.alive()

    def link(self, python: str, standing: Standing) -> Link:
        """A living warden that is what its host is now; started if there is none.

        Raises:
            SpawnRefused: it was lost too often.
            OSError: it could not be started.
        """
        with self._lock:
            link = self._links.get(python)
            if link is not None and link.alive():
                if link.standing == standing.fixed:
                    return link
                self._retired.append(link)  # its calls go on; it is ended with the others
            elif link is not None:
                link.forget()
                self._losses.append(time.monotonic())
            self._links.pop(python, None)
            self._check_losses()
            self._links[python] = Link(python, standing.fixed)
            return self._links[python]

    def _check_losses(self) -> None:
        while self._losses and self._losses[0] < time.monotonic() - LOSS_WINDOW:
            self._losses.popleft()
        if len(self._losses) > MAX_LOSSES:
            text = f"the supervising process was lost {len(self._losses)} times within {LOSS_WINDOW:.0f} s"
            raise SpawnRefused(SpawnErrorKind.SETUP, text)

    def forget(self) -> None:
        """In a forked child: drop everything without touching the parent's warden."""
        for link in (*self._links.values(), *self._retired):
            link.forget()
        self._lock = threading.Lock()  # another thread of the parent may have held the old one: nobody here would release it
        self._users, self._links, self._retired = 0, {}, []
        self._losses.clear()


WARDENS = Wardens()
if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=WARDENS.forget)
