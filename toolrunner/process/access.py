"""A supervisor's way to a warden of its host's standing, and into that warden's queue.

State: whether the supervisor is counted among the wardens' users, and what this host was at the last look.
"""

import contextlib
import errno
import time
from typing import final

import anyio

from toolrunner.process.ending import SpawnErrorKind, SpawnRefused
from toolrunner.process.kept import START_BOUND, LostAtGate, Unfit
from toolrunner.process.launch import Ends, launch
from toolrunner.process.link import FEW, Link
from toolrunner.process.request import Request
from toolrunner.process.standing import Standing, standing
from toolrunner.process.wardens import WARDENS

QUEUE_PAUSE = 0.5
"""Seconds to wait for room in the warden's queue before looking whether the warden is awake."""


@final
class Access:
    """`python` is the interpreter for a warden that has to be started; None: there is none."""

    def __init__(self, python: str | None) -> None:
        self.python = python
        self._entered = False
        self._now: Standing | None = None

    def find(self) -> tuple[Standing, Link]:
        """What this host was at the last look, and a warden of that standing. Raises SpawnRefused or Unfit.

        To look costs a sixth of a start. So a request is sent on the last look, and `changed` is asked while a child sets itself
        up for it: nothing of it runs before `go`. A warden is started on a look of now only, because it is what its host is now.
        """
        if self.python is None:
            raise Unfit("there is no Python interpreter to supervise with")
        if not self._entered:
            self._entered = True
            WARDENS.enter()
        now = self._now
        if now is None or not WARDENS.has(self.python, now):
            now = self.look()
        try:
            return now, WARDENS.link(self.python, now)
        except (FileNotFoundError, PermissionError, NotADirectoryError) as exc:
            raise Unfit(f"the interpreter {self.python!r} cannot be run: {exc.strerror}") from exc
        except OSError as exc:
            raise SpawnRefused.from_os("starting the supervising process", exc) from exc

    def look(self) -> Standing:
        """What this host is now. Raises SpawnRefused or Unfit."""
        try:
            self._now = standing()
        except OSError as exc:
            if exc.errno in (errno.EMFILE, errno.ENFILE):
                raise SpawnRefused.from_os("descriptors for the process", exc) from exc
            raise Unfit(f"/proc cannot be read: {exc.strerror}") from exc
        return self._now

    def leave(self) -> list[Link]:
        """The supervisor is closed. The links that it was the last user of, for the caller to end."""
        return WARDENS.leave() if self._entered else []


async def send(link: Link, request: Request, umask: int) -> Ends:
    """Put the request into the warden's queue, waiting while it is full. Raises SpawnRefused or LostAtGate."""
    until = time.monotonic() + START_BOUND
    while True:
        try:
            return launch(link.requests, request, umask)
        except OSError as exc:
            if exc.errno == errno.EBADF:
                raise SpawnRefused.from_os("a descriptor that the plan names", exc) from exc
            # ETOOMANYREFS: this user has too many descriptors under way; they arrive as keepers take their requests.
            if exc.errno not in (errno.EAGAIN, errno.ETOOMANYREFS):
                raise LostAtGate from exc
            if time.monotonic() > until:
                text = f"no keeper took the request within {START_BOUND:.0f} s"
                raise SpawnRefused(SpawnErrorKind.SETUP, text) from exc
            await _room(link, queue_is_full=exc.errno == errno.EAGAIN)


async def _room(link: Link, *, queue_is_full: bool) -> None:
    """Wait until the queue takes more."""
    link.wake()
    with anyio.move_on_after(QUEUE_PAUSE):
        if queue_is_full:
            with contextlib.suppress(anyio.BusyResourceError):  # another supervisor of this loop waits there already
                await anyio.wait_writable(link.requests)
                return
        await anyio.sleep(FEW)  # nothing announces that fewer descriptors are under way
