"""One process held by a keeper, seen from the host. State changes are synchronous; the only task is whoever awaits `wait`.

The keeper decides what happened and in which order; the host mirrors its clocks only to notice a keeper that answers no more.
"""

import math
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import final

import anyio

from toolrunner.facts import ProcessIdentity
from toolrunner.process.cgroups import end_cgroup
from toolrunner.process.ending import ProcessEnd, SpawnErrorKind, SpawnRefused
from toolrunner.process.finish import Finish
from toolrunner.process.identity import identity_of
from toolrunner.process.keeping.messages import DRAIN_BOUND, MESSAGE_LIMIT, REAP_BOUND, decode, unhexed
from toolrunner.process.launch import Ends
from toolrunner.process.link import Link
from toolrunner.process.pipes import Pipes
from toolrunner.process.plan import WindowSize
from toolrunner.process.report import Listing, Report, parse_report
from toolrunner.process.request import Request
from toolrunner.process.survey import Quarry, end_all

START_BOUND = 5.0
"""Seconds for a prepared process to reach its gate; a start takes milliseconds, and a machine that needs more is refusing."""

KEEPER_BOUND = 1.0
"""Seconds in which a keeper must answer an order, or begin the ladder after its deadline. Then the warden takes over."""

HEARTBEAT = 5.0
"""Seconds between looks at the warden while a process runs: something may have stopped it together with its keeper."""

LATE = 0.25
"""A timer that fires this many seconds late means that the host's own loop was stuck: the keeper gets another bound."""


class LostAtGate(Exception):
    """Keeper or warden went before the gate was reached. Nothing ran, so the same plan may simply be launched again."""


class Unfit(Exception):
    """This warden's self-test failed: there are no keepers here, for the reason given."""


@final
class KeptProcess:
    """A `Prepared` whose keeper answers for it. `closed` is called once, when it is over and nothing of it is held any more."""

    def __init__(self, request: Request, ends: Ends, link: Link, closed: Callable[["KeptProcess"], None]) -> None:
        self.plan = plan = request.plan
        self.identity: ProcessIdentity | None = None
        self.unreaped: Listing = []  # what SIGKILL had not ended when the end was reported
        self._control, self._link, self._mark, self._closed = ends.control, link, request.mark, closed
        self._cgroup, self._enforced = request.cgroup, request.enforced
        self._pipes = Pipes(request, (ends.stdout, ends.stderr, ends.stdin))
        self._keeper = 0
        self._lock = anyio.Lock()
        self._scope: anyio.CancelScope | None = None  # of the wait for a message, while there is one
        self._go_at: float | None = None
        self._stop_at: float | None = None  # first request; monotonic
        self._requested_at: datetime | None = None
        self._grace = plan.kill_after
        self._stopping = False  # the keeper said that the ladder began
        self._bound = math.inf  # monotonic: when the keeper must have said something
        self._extended = False
        self._report: Report | None = None
        self._end: ProcessEnd | None = None

    # -- preparation ------------------------------------------------------------------------------------------------------

    async def reach_gate(self) -> None:
        """Wait until the child stands at the gate. Raises SpawnRefused, LostAtGate or Unfit; the caller then disposes."""
        until = time.monotonic() + START_BOUND
        while (left := until - time.monotonic()) > 0:
            with anyio.move_on_after(min(left, KEEPER_BOUND)) as scope:
                await anyio.wait_readable(self._control)
            if scope.cancelled_caught:
                self._link.wake()  # a stopped warden forks no keepers
                continue
            message = self._receive()
            if message is None:
                continue
            if not message:
                raise LostAtGate
            self._at_gate(*decode(message))
            return
        raise SpawnRefused(SpawnErrorKind.SETUP, f"the process did not reach its start gate within {START_BOUND:.0f} s")

    def _at_gate(self, kind: str, words: dict[str, str]) -> None:
        if kind == "unfit":
            raise Unfit(unhexed(words["why"]))
        self._link.proved = True
        if kind == "killed":
            raise LostAtGate
        if kind == "refused":
            raise self._refusal(words)
        if kind != "ready":  # `ended`: it lost its warden
            raise LostAtGate
        self._keeper = int(words["keeper"])
        self.identity = identity_of(int(words["pid"]), int(words["starttime"]))

    def _refusal(self, words: dict[str, str]) -> SpawnRefused:
        number = int(words["errno"])
        step = unhexed(words["step"]) if "step" in words else ""
        return SpawnRefused(SpawnErrorKind.SETUP, f"{step}: {os.strerror(number)}" if number else step, number or None)

    # -- orders: synchronous ----------------------------------------------------------------------------------------------

    def go(self) -> None:
        """Release it: the moment of action."""
        if self._go_at is None and self._stop_at is None and self._end is None and self._send(b"go"):
            self._go_at = time.monotonic()
            if self.plan.timeout is not None:
                self._expect(self._go_at + self.plan.timeout + KEEPER_BOUND)

    def stop(self, *, grace: float | None = None) -> None:
        """Ask for the ladder; see `Prepared.stop`."""
        grace = self.plan.kill_after if grace is None else max(0.0, grace)
        self._pipes.release_sinks()
        if self._end is not None or self._report is not None or (self._stop_at is not None and grace >= self._grace):
            return
        if self._stop_at is None:
            self._stop_at, self._requested_at = time.monotonic(), datetime.now(UTC)
            self._pipes.close_stdin()  # the ladder's first step; under a keeper's own deadline it follows its message
        self._grace = grace
        self._send(f"stop {grace}".encode())
        self._expect(time.monotonic() + (grace + REAP_BOUND if self._stopping else 0) + KEEPER_BOUND)

    async def write(self, data: bytes) -> bool:
        """Write to stdin; see `Prepared.write`."""
        return self._end is None and await self._pipes.write(data)

    def close_stdin(self) -> None:
        """No more input; see `Prepared.close_stdin`."""
        self._pipes.end_input()

    def resize(self, size: WindowSize) -> None:
        """Change the terminal's size; see `Prepared.resize`."""
        self._pipes.resize(size)

    def _send(self, order: bytes) -> bool:
        try:
            self._control.send(order)
        except OSError:  # the keeper is gone; `wait` finds out what that means
            return False
        return True

    def _expect(self, bound: float) -> None:
        """The keeper must say something until then. Wakes the waiter into the new bound."""
        self._bound = min(self._bound, bound) if not self._stopping else bound
        if self._scope is not None:
            self._scope.deadline = self._loop_time(self._bound)

    @staticmethod
    def _loop_time(monotonic: float) -> float:
        """The event loop's clock may have another origin (trio's has)."""
        return math.inf if monotonic == math.inf else anyio.current_time() + monotonic - time.monotonic()

    # -- the end ----------------------------------------------------------------------------------------------------------

    async def abandon(self) -> None:
        """Give it up; see `Prepared.abandon`."""
        with anyio.CancelScope(shield=True):
            self.stop(grace=0)
            await self.wait()

    async def wait(self) -> ProcessEnd:
        """The end; see `Prepared.wait`."""
        async with self._lock:
            if self._end is None:
                report = await self._run()
                finish = Finish(
                    self.plan, self._pipes.readers, self._go_at is not None, self._stop_at is not None, enforced=self._enforced
                )
                self._end = finish.build(report, self.identity, self._requested_at)
                self.unreaped = report.left
                self.dispose()
        return self._end

    async def _run(self) -> Report:
        async with anyio.create_task_group() as tasks:
            self._pipes.start(tasks, self._on_eof)
            if self._report is None:
                self._report = await self._emptied(await self._follow())
            report = self._report
            self._pipes.finish()
        return report

    async def _emptied(self, report: Report) -> Report:
        """What its cgroup says about the end: that nobody is left is proved by it even where keeper and warden were lost."""
        if self._cgroup is None:
            return report
        left = await end_cgroup(self._cgroup)
        return replace(report, left=left or ([] if report.keeper_lost else report.left), proven=True)

    def _on_eof(self) -> None:
        if self._report is None:
            self._send(b"eof")

    async def _follow(self) -> Report:
        """Read the keeper's messages to the last one."""
        while True:
            message = self._receive()
            if message:
                kind, words = decode(message)
                if kind == "ended":
                    return await self._ended(parse_report(words))
                if kind == "killed":  # at the gate, after `ready`: whatever was sent, nothing ran
                    return Report(cause="refused", released=False, at=time.monotonic(), left=[])
                self._on_message(kind)
            elif message is None:
                if not await self._next_message():
                    return await self._lost()
            else:
                return await self._lost()

    async def _ended(self, report: Report) -> Report:
        if report.cause == "lost" and self._stop_at is None:
            await self._link.settle()  # its warden died: the next call must not be sent to that one
        return report

    def _receive(self) -> bytes | None:
        """A message, b"" when the keeper is gone, None when there is none yet."""
        for _ in range(2):
            try:
                return self._control.recv(MESSAGE_LIMIT)
            except BlockingIOError:
                return None
            except ConnectionResetError:
                # The keeper left with an order of ours unread. The kernel says so once, and before the last message it sent.
                continue
            except OSError:
                break
        return b""

    async def _next_message(self) -> bool:
        """Wait for one. False when the keeper should have said something and did not."""
        with anyio.CancelScope(deadline=self._loop_time(min(self._bound, time.monotonic() + HEARTBEAT))) as scope:
            self._scope = scope
            try:
                await anyio.wait_readable(self._control)
            finally:
                self._scope = None
        if not scope.cancelled_caught:
            return True
        late = time.monotonic() - self._bound
        if late < 0:
            self._link.wake()
            return True
        if not self._extended:
            # Once more: our own loop may have been stuck, or something has stopped warden and keeper.
            self._extended = True
            self._link.wake()
            self._bound = time.monotonic() + (KEEPER_BOUND if late > LATE else KEEPER_BOUND / 2)
            return True
        return False

    def _on_message(self, kind: str) -> None:
        if kind == "stopping":
            self._stopping = True
            self._pipes.stopping()
            self._bound = time.monotonic() + self._grace + REAP_BOUND + KEEPER_BOUND
        elif kind == "exited":
            self._bound = time.monotonic() + DRAIN_BOUND + REAP_BOUND + KEEPER_BOUND

    async def _lost(self) -> Report:
        """The keeper died or is stuck: its warden ends what it left; without a warden the host looks itself."""
        timed_out = self.plan.timeout is not None and self._go_at is not None
        timed_out = timed_out and self._stop_at is None and time.monotonic() >= (self._go_at or 0) + (self.plan.timeout or 0)
        cause = "stopped" if self._stop_at is not None else "timed_out" if timed_out else "lost"
        left = await self._link.adopt(self._keeper)
        proven = left is not None
        if left is None:
            left = await end_all(Quarry(self._mark, self.identity), REAP_BOUND)
        signals = () if cause == "lost" else ("SIGKILL",)
        return Report(cause=cause, at=time.monotonic(), signals=signals, left=left, proven=proven, keeper_lost=True)

    def forget(self) -> None:
        """In a forked child of the host: close the copies, touch nothing else."""
        self._control.close()
        self._pipes.forget()

    def dispose(self) -> None:
        """Close everything; a keeper that is still there reads EOF and sweeps. Idempotent."""
        self._control.close()
        self._pipes.close()
        if self._cgroup is not None:
            self._cgroup.remove()  # refused while somebody is in it: then its keeper does it
        self._closed(self)
