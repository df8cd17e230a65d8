"""The front of supervised processes: prepares them, owns them until they are over, ends its warden with the last of them.

State: `_live` (processes that are not over), `_unreaped` (what SIGKILL has not ended yet). One supervisor belongs to one event
loop. It runs no task of its own: whoever awaits `Prepared.wait` does the reading, and `aclose` finishes what nobody awaited.
"""

import os
import secrets
import sys
import time
from typing import final

import anyio

from toolrunner.errors import RunnerClosed
from toolrunner.facts import Containment, StillRunning
from toolrunner.process.ending import SpawnErrorKind, SpawnRefused
from toolrunner.process.kept import START_BOUND, KeptProcess, LostAtGate, Unfit
from toolrunner.process.launch import Ends, launch
from toolrunner.process.link import Link
from toolrunner.process.plan import LaunchPlan
from toolrunner.process.prepared import Observer, Prepared, Sink
from toolrunner.process.standing import Standing, standing
from toolrunner.process.wardens import WARDENS

ATTEMPTS = 2
"""Launches of one plan: a warden or idle keeper that dies just then has run nothing, so once more is safe."""


@final
class Supervisor:
    """Starts processes and owns them until they are proven to be gone. Shares the one warden of this host process.

    `python` is the interpreter for the warden; by default the one below this one's virtual environment. `containment` None
    takes the best this host can do; KEEPER refuses where keepers do not work; BEST_EFFORT uses none.
    """

    def __init__(self, *, python: str | None = None, containment: Containment | None = None) -> None:
        self._python = python or getattr(sys, "_base_executable", None) or sys.executable or None
        self._wanted = containment
        self._live: set[Prepared] = set()
        self._pid = os.getpid()
        self._entered = False
        self._closed = False

    async def prepare(
        self, plan: LaunchPlan, *, dirfd: int | None = None, on_output: Observer | None = None, sink: Sink | None = None
    ) -> Prepared:
        """Make the process and hold it at its gate.

        `dirfd` is the working directory, already open, and wins over `plan.cwd`; it stays the caller's.

        Raises:
            SpawnRefused: nothing was released, and why.
            RunnerClosed: after `aclose`, or in a forked child.
        """
        self._check_open()
        return await self._prepare_kept(plan, dirfd, on_output, sink)

    def _check_open(self) -> None:
        if self._pid != os.getpid():
            raise RunnerClosed("it was inherited by a forked process")
        if self._closed:
            raise RunnerClosed("its supervisor is closed")

    async def _prepare_kept(self, plan: LaunchPlan, dirfd: int | None, on_output: Observer | None, sink: Sink | None) -> Prepared:
        for _ in range(ATTEMPTS):
            now = standing()
            link = self._link(now)
            mark = secrets.token_hex(8)
            ends = await self._send(link, plan, dirfd, mark, now.umask)
            process = KeptProcess(plan, ends, link, mark, on_output, sink, self._live.discard)
            try:
                await process.reach_gate()
            except LostAtGate:
                process.dispose()
            except BaseException:
                process.dispose()  # its keeper reads EOF: the gate stays shut
                raise
            else:
                self._live.add(process)
                return process
        raise SpawnRefused(SpawnErrorKind.SETUP, "the supervising process died while this one was being prepared")

    def _link(self, now: Standing) -> Link:
        if self._python is None:
            raise SpawnRefused(SpawnErrorKind.SETUP, "there is no Python interpreter to supervise with")
        if not self._entered:
            self._entered = True
            WARDENS.enter()
        try:
            return WARDENS.link(self._python, now)
        except OSError as exc:
            raise SpawnRefused.from_os(f"starting the supervising process with {self._python!r}", exc) from exc

    async def _send(self, link: Link, plan: LaunchPlan, dirfd: int | None, mark: str, umask: int) -> Ends:
        """Put the request into the warden's queue, waiting while it is full."""
        until = time.monotonic() + START_BOUND
        while True:
            try:
                return launch(link.requests, plan, dirfd, mark, umask)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise SpawnRefused(SpawnErrorKind.SETUP, f"no keeper took the request within {START_BOUND:.0f} s") from None
                await self._room(link)
            except OSError as exc:
                raise SpawnRefused.from_os("request to the supervising process", exc) from exc

    async def _room(self, link: Link) -> None:
        """Wait until the queue takes more."""
        link.wake()
        with anyio.move_on_after(0.5):
            try:
                await anyio.wait_writable(link.requests)
            except anyio.BusyResourceError:  # another supervisor of this loop waits there already
                await anyio.sleep(0.002)

    async def aclose(self) -> None:
        """Stop and await every process that is still owned; end the warden if this was its last user. Idempotent."""
        if self._closed or self._pid != os.getpid():
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for process in list(self._live):
                    tasks.start_soon(process.abandon)
            if self._entered:
                for link in WARDENS.leave():
                    await link.end()
