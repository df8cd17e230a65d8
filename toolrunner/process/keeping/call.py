"""The state of one supervised call inside its keeper: what happened so far and what follows. No I/O except signals.

Only the keeper's loop changes it, one event after another, so "first cause" means the first that this loop saw.
Phases: waiting (child at the gate) -> running -> stopping (ladder) or draining (leader gone, others not) -> over.
"""

import math
import time

from toolrunner.process.keeping.ladder import STEPS, contained, interrupt, signal_contained, terminate
from toolrunner.process.keeping.messages import DRAIN_BOUND
from toolrunner.process.keeping.system import Kernel, peek


class Call:
    """All times are CLOCK_MONOTONIC seconds, `inf` or None when not set; the host's clock is the same one."""

    def __init__(
        self,
        kernel: Kernel,
        leader: int,
        timeout: float,
        grace: float,
        steps: tuple[tuple[float, str], ...] = STEPS,
        *,
        keep: bool = False,
    ) -> None:
        self.kernel = kernel
        self.leader = leader  # unreaped until the sweep, so its number and its group's stay ours
        self.timeout = timeout
        self.grace = grace
        self.steps = steps
        self.keep = keep  # who outlives the leader is kept, unless the call is being stopped
        self.kept = False
        self.own = 0  # generations from the leader down that only contain the command: never asked, only killed
        self.pending: list[tuple[float, str]] = []  # steps of a ladder that runs: (when, which signal), not sent yet
        self.released = False
        self.exec_error: str | None = None
        self.deadline = math.inf  # of the whole call; counts from the release
        self.cause = ""  # "" until something stops it: stopped | timed_out | lost
        self.delivered: float | None = None  # first signal of the ladder
        self.kill_at = math.inf
        self.leader_status: int | None = None  # wait status; known before it is reaped
        self.leader_at: float | None = None
        self.drain_until = math.inf
        self.drained_out = False  # D ran out before the last holder went
        self.host_saw_eof = False
        self.finish = False  # sweep now
        self.signals: list[str] = []

    def release(self) -> None:
        """The host said go."""
        self.released = True
        self.deadline = time.monotonic() + self.timeout

    def stop(self, cause: str, grace: float) -> bool:
        """Begin the ladder, or shorten one that runs. True when this was its beginning."""
        now = time.monotonic()
        self.look_at_leader()  # its death may have come just before
        if not self.released or (self.leader_at is not None and not self.kept):
            # Nothing ran yet, or the leader went before any signal of ours: no ladder, only the sweep.
            self.finish = True
            if not self.released and not self.cause:
                self.cause = cause
            return False
        first = not self.cause
        if first:
            self.cause = cause
            self.deadline = math.inf
            self.delivered = now
            if grace > 0 and self.own and not contained(self.kernel, self.own):
                self.kill_at = now  # the command is not there yet, so there is nobody to ask
            elif grace > 0:
                self.pending = [(now + part * grace, name) for part, name in self.steps]
                self.send_due(now)
        self.kill_at = min(self.kill_at, now + grace)
        self.finish = self.finish or self.kill_at <= now
        return first

    def send_due(self, now: float) -> None:
        """Send what the ladder has for this time. A leader that is gone gets no Ctrl-C; who outlives it still gets SIGTERM."""
        while self.pending and self.pending[0][0] <= now:
            name = self.pending.pop(0)[1]
            if self.own:
                signal_contained(self.kernel, self.own, name)
            elif name == "SIGTERM":
                terminate(self.kernel, self.leader)
            elif self.leader_at is None:
                interrupt(self.kernel, self.leader)
            else:
                continue
            self.signals.append(name)

    def observe_children(self) -> bool:
        """Look who is dead. True when the leader is and others are not: the host should be told."""
        self.look_at_leader()
        if self.leader_at is not None and self.kernel.only_zombies():
            self.finish = True
            return False
        self.reap_others()
        if self.leader_at is None or self.cause or self.kept or self.drain_until != math.inf:
            return False
        self.drain_until = time.monotonic() + DRAIN_BOUND
        if self.host_saw_eof:
            self.drained()
        return True

    def drained(self) -> None:
        """The leader went by itself, and those it left had their time."""
        self.drain_until = math.inf
        self.kept = self.keep
        self.finish = self.finish or not self.keep

    def settle_cause(self) -> None:
        """The last look before the sweep: a leader that went before any signal of ours was not stopped by us."""
        self.look_at_leader()
        if self.leader_at is not None and self.released and self.delivered is not None and not self.signals and not self.kept:
            self.cause, self.delivered = "", None

    def look_at_leader(self) -> None:
        """Learn the leader's status and leave it a zombie: its number must not be given away before the last group signal."""
        if self.leader_at is not None:
            return
        try:
            self.leader_status = peek(self.leader)
        except ChildProcessError:
            return
        if self.leader_status is not None:
            self.leader_at = time.monotonic()

    def reap_others(self) -> None:
        """Reap dead orphans that came to us, so that a long call leaves no zombies standing. The leader is left."""
        for pid in self.kernel.children():
            if pid != self.leader:
                try:
                    self.kernel.reap(pid)
                except ChildProcessError:
                    continue

    def eof(self) -> None:
        """The host read both streams to their end: nobody holds them, so there is nothing to drain."""
        self.host_saw_eof = True
        # A ladder goes on: who has no output any more may still be cleaning up in its grace.
        if self.leader_at is not None and not self.cause and not self.kept:
            self.drained()

    def lost(self) -> None:
        """Host or warden is gone: nobody is left to be polite for."""
        self.cause = self.cause or "lost"
        self.finish = True

    def next_time(self) -> float:
        """When `tick` has to run at the latest."""
        step = self.pending[0][0] if self.pending else math.inf
        return min(self.deadline, self.kill_at, self.drain_until, step)

    def tick(self) -> bool:
        """Act on times that have come. True when the ladder began because of the deadline."""
        now = time.monotonic()
        if self.drain_until <= now:
            self.drained_out = True
            self.drained()
        if self.kill_at <= now:
            self.finish = True
        elif self.pending:
            self.send_due(now)
        if self.deadline <= now and self.leader_at is None and not self.cause:
            return self.stop("timed_out", self.grace)
        return False
