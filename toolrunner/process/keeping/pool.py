"""The warden's keepers: some idle ahead of need, each busy one with a call. Only the warden changes it."""

import errno
import os
import socket
import struct
import time
from collections.abc import Iterable

from toolrunner.process.keeping.idle import keep
from toolrunner.process.keeping.keeper import Links
from toolrunner.process.keeping.system import Kernel

MOST_IDLE = 8
"""Idle keepers at most: about 1 MB each, and a burst of that size starts without waiting for a fork."""

FEWEST_IDLE = 2
"""Aimed at from the start: with one alone, each call would wait for the fork that replaces the keeper of the call before."""

IDLE_TIME = 10
"""Seconds until an idle keeper that is not needed leaves, and the pool aims at one less."""

CALM = 0.01
"""Seconds a replacement fork waits while another keeper is idle: it would compete with the command that is just starting."""


class Pool:
    """`idle` and `busy` hold keepers' pids. `aim` is how many are to be idle; it grows when all were taken."""

    def __init__(self, kernel: Kernel, links: Links, private: Iterable[int]) -> None:
        self.kernel, self.links, self.private = kernel, links, tuple(private)
        self.idle: dict[int, bool] = {}  # pid -> stays
        self.busy: set[int] = set()
        self.stops: dict[int, int] = {}
        self.aim = FEWEST_IDLE
        self.due: float | None = None  # when missing keepers are to be forked
        self.fork_error = errno.EAGAIN
        # All idle keepers share this socket and so this time-out.
        links.requests.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", IDLE_TIME, 0))

    def holds(self, pid: int) -> bool:
        """Whether this child is a keeper."""
        return pid in self.idle or pid in self.busy

    def fill(self) -> bool:
        """Fork what is missing, when it is time to. False when there is no idle keeper and none could be made."""
        while len(self.idle) < self.aim:
            if self.idle and self.due is not None and time.monotonic() < self.due:
                return True
            if not self.fork():
                self.due = None
                return bool(self.idle)
        self.due = None
        return True

    def fork(self) -> bool:
        """One more idle keeper."""
        stays = sum(self.idle.values()) < FEWEST_IDLE
        try:
            pid = os.fork()
        except OSError as exc:
            self.fork_error = exc.errno or errno.EAGAIN
            return False
        if pid == 0:
            try:
                for fd in self.private:
                    os.close(fd)
                keep(self.kernel, self.links, stays=stays)
            finally:  # a keeper never returns into the warden's loop
                os._exit(0)
        self.idle[pid] = stays
        return True

    def took(self, notes: bytes) -> None:
        """Keepers wrote that they took a request."""
        for word in notes.split():
            pid = int(word)
            if self.idle.pop(pid, None) is not None:
                self.busy.add(pid)
        if not self.idle:
            self.aim = min(MOST_IDLE, self.aim + 1)
        if self.due is None:
            self.due = time.monotonic() + CALM

    def stopped(self, pid: int) -> int:
        """A child was stopped: how often by now, 0 when it is no keeper."""
        if not self.holds(pid):
            return 0
        self.stops[pid] = self.stops.get(pid, 0) + 1
        return self.stops[pid]

    def died(self, pid: int) -> None:
        """A child was reaped."""
        self.stops.pop(pid, None)
        self.busy.discard(pid)
        if self.idle.pop(pid, None) is not None:
            self.aim = max(FEWEST_IDLE, self.aim - 1)
