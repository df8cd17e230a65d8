"""One process held by a keeper, seen from the host. State changes are synchronous; the only task is whoever awaits `wait`.

The keeper decides what happened and in which order; the host mirrors its clocks only to notice a keeper that answers no more.
"""

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
from toolrunner.process.keeping.messages import DRAIN_BOUND, REAP_BOUND, decode, unhexed
from toolrunner.process.launch import Ends
from toolrunner.process.line import KEEPER_BOUND, KeeperLine
from toolrunner.process.link import Link
from toolrunner.process.pipes import Pipes
from toolrunner.process.plan import WindowSize
from toolrunner.process.report import Listing, Report, parse_hand_over, parse_report
from toolrunner.process.request import Request
from toolrunner.process.survey import Quarry, end_all
from toolrunner.process.wrapped import read_status

START_BOUND = 5.0
"""Seconds for a prepared process to reach its gate; a start takes milliseconds, and a machine that needs more is refusing."""


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
        self._line, self._link, self._mark, self._closed = KeeperLine(ends.control, link), link, request.mark, closed
        self._cgroup, self._enforced = request.cgroup, request.enforced
        self._pipes = Pipes(request, (ends.stdout, ends.stderr, ends.stdin))
        self._status = ends.status  # where a wrapper says what became of the command; read once, at the end
        self._keeper = 0
        self._lock = anyio.Lock()
        self._go_at: float | None = None
        self._stop_at: float | None = None  # first request; monotonic
        self._requested_at: datetime | None = None
        self._grace = plan.kill_after
        self._stopping = False  # the keeper said that the ladder began
        self._report: Report | None = None  # of what `wait` or `wait_rest` waits for
        self._end: ProcessEnd | None = None  # of the call
        self._kept = False  # the call is over; what it left lives on
        self._rest: ProcessEnd | None = None  # the end of that

    # -- preparation ------------------------------------------------------------------------------------------------------

    async def reach_gate(self) -> None:
        """Wait until the child stands at the gate. Raises SpawnRefused, LostAtGate or Unfit; the caller then disposes."""
        until = time.monotonic() + START_BOUND
        while (left := until - time.monotonic()) > 0:
            with anyio.move_on_after(min(left, KEEPER_BOUND)) as scope:
                await anyio.wait_readable(self._line.control)
            if scope.cancelled_caught:
                self._link.wake()  # a stopped warden forks no keepers
                continue
            message = self._line.receive()
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
        if self._go_at is None and self._stop_at is None and not self._is_over and self._line.send(b"go"):
            self._go_at = time.monotonic()
            if self.plan.timeout is not None:
                self._line.expect(self._go_at + self.plan.timeout + KEEPER_BOUND)

    def stop(self, *, grace: float | None = None) -> None:
        """Ask for the ladder; see `Prepared.stop`."""
        grace = self.plan.kill_after if grace is None else max(0.0, grace)
        self._pipes.release_sinks()
        if self._is_over or self._report is not None or (self._stop_at is not None and grace >= self._grace):
            return
        if self._stop_at is None:
            self._stop_at, self._requested_at = time.monotonic(), datetime.now(UTC)
            self._pipes.close_stdin()  # the ladder's first step; under a keeper's own deadline it follows its message
        self._grace = grace
        self._line.send(f"stop {grace}".encode())
        bound = time.monotonic() + (grace + REAP_BOUND if self._stopping else 0) + KEEPER_BOUND
        self._line.expect(bound if self._stopping else min(self._line.bound, bound))

    async def write(self, data: bytes) -> int:
        """Write to stdin; see `Prepared.write`."""
        return await self._pipes.write(data) if not self._is_over else 0

    def close_stdin(self) -> None:
        """No more input; see `Prepared.close_stdin`."""
        self._pipes.end_input()

    def resize(self, size: WindowSize) -> None:
        """Change the terminal's size; see `Prepared.resize`."""
        self._pipes.resize(size)

    # -- the end ----------------------------------------------------------------------------------------------------------

    async def abandon(self) -> None:
        """Give it up; see `Prepared.abandon`."""
        with anyio.CancelScope(shield=True):
            self.stop(grace=0)
            await self.wait()
            await self.wait_rest()

    @property
    def _is_over(self) -> bool:
        """Whether nothing of it is left that could be stopped or spoken to."""
        return self._end is not None and (self._rest is not None or not self._kept)

    async def wait(self) -> ProcessEnd:
        """The end; see `Prepared.wait`."""
        async with self._lock:
            if self._end is None:
                report = await self._run()
                self._end = self._build(report)
                if report.kept:
                    self._kept, self._report = True, None
                    self._line.calm()
                else:
                    self._let_go(report)
        return self._end

    async def wait_rest(self) -> ProcessEnd:
        """The end of what was kept; see `Prepared.wait_rest`."""
        end = await self.wait()
        async with self._lock:
            if self._kept and self._rest is None:
                report = await self._run()
                self._rest = self._build(report)
                self._let_go(report)
        return self._rest or end

    def _build(self, report: Report) -> ProcessEnd:
        readers, released, stopped = self._pipes.readers, self._go_at is not None, self._stop_at is not None
        said = read_status(self._status) if self._status is not None else None
        finish = Finish(self.plan, readers, released, stopped, enforced=self._enforced, status=said)
        return finish.build(report, self.identity, self._requested_at)

    def _let_go(self, report: Report) -> None:
        self.unreaped = report.left
        self.dispose()

    async def _run(self) -> Report:
        async with anyio.create_task_group() as tasks:
            self._pipes.start(tasks, self._on_eof)
            if self._report is None:
                report = await self._follow()
                self._report = report if report.kept else await self._emptied(report)
            report = self._report
            if report.kept:
                tasks.cancel_scope.cancel()  # they go on where they were when somebody waits for the rest
            else:
                self._pipes.finish()
        return report

    async def _emptied(self, report: Report) -> Report:
        """What its cgroup says about the end: that nobody is left is proved by it even where keeper and warden were lost."""
        if self._cgroup is None:
            return report
        left = await end_cgroup(self._cgroup)
        return replace(report, left=left or ([] if report.keeper_lost else report.left), proven=True)

    def _on_eof(self) -> None:
        if self._report is None and self._stop_at is None:  # a stop does not end sooner because nobody holds the streams
            self._line.send(b"eof")

    async def _follow(self) -> Report:
        """Read the keeper's messages to the last one."""
        while True:
            message = self._line.receive()
            if message:
                kind, words = decode(message)
                if kind == "ended":
                    return await self._ended(parse_report(words))
                if kind == "kept" and self._stop_at is None:
                    return parse_hand_over(words)
                if kind == "killed":  # at the gate, after `ready`: whatever was sent, nothing ran
                    return Report(cause="refused", released=False, at=time.monotonic(), left=[])
                self._on_message(kind)
            elif message is None:
                if not await self._line.next_message():
                    return await self._lost()
            else:
                return await self._lost()

    async def _ended(self, report: Report) -> Report:
        if report.cause == "lost" and self._stop_at is None:
            await self._link.settle()  # its warden died: the next call must not be sent to that one
        if report.signals:  # a command that goes at once may leave no time for the keeper's "stopping"
            self._pipes.stopping()
        return report

    def _on_message(self, kind: str) -> None:
        if kind == "stopping":
            self._stopping = True
            self._pipes.stopping()
            self._line.bound = time.monotonic() + self._grace + REAP_BOUND + KEEPER_BOUND
        elif kind == "exited":
            self._line.bound = time.monotonic() + DRAIN_BOUND + REAP_BOUND + KEEPER_BOUND

    async def _lost(self) -> Report:
        """The keeper died or is stuck: its warden ends what it left; without a warden the host looks itself."""
        timed_out = self.plan.timeout is not None and self._go_at is not None and not self._kept
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
        self._line.close()
        self._pipes.forget()
        self._close_status()

    def _close_status(self) -> None:
        if self._status is not None:
            os.close(self._status)
            self._status = None

    def dispose(self) -> None:
        """Close everything; a keeper that is still there reads EOF and sweeps. Idempotent."""
        self._line.close()
        self._pipes.close()
        self._close_status()
        if self._cgroup is not None:
            self._cgroup.remove()  # refused while somebody is in it: then its keeper does it
        self._closed(self)
