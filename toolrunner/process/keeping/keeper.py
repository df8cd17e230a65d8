"""A busy keeper: the subreaper of one call, which it holds from the start gate to the end.

Everything it may signal is its own: the leader's group while the leader is unreaped, and its children. It ends when the
kernel has said that it has no child left, or `REAP_BOUND` after SIGKILL, and then its orphans go to the warden.
"""

import math
import os
import select
import signal
import socket
import time

from toolrunner.process.keeping.call import Call
from toolrunner.process.keeping.cgroup import Cgroup
from toolrunner.process.keeping.gate import Gate
from toolrunner.process.keeping.ladder import descendants
from toolrunner.process.keeping.messages import REAP_BOUND, encode, hexed, listing
from toolrunner.process.keeping.sweep import Swept, describe, sweep
from toolrunner.process.keeping.waking import pause_on

TELL_AFTER = 0.003
"""Seconds from the first signal of a ladder until the host is told of it. Most processes are gone by then; the host would be
woken for nothing, at the very moment when their end is about to be reported."""

LONGEST_POLL = 3600.0
"""Seconds. poll(2) counts milliseconds in an int, which overflows after 24.8 days; a longer wait is made of several."""


class Links:
    """What a keeper has from its warden. `life` reads EOF when the warden dies; `host` is a pidfd of the host, or -1."""

    def __init__(self, requests: socket.socket, notes: int, life: int, host: int) -> None:
        self.requests, self.notes, self.life, self.host = requests, notes, life, host


def refuse(control: socket.socket, number: int, step: str) -> None:
    """Tell the host that this call will not be; nothing of it ran."""
    try:
        control.send(encode("refused", errno=number, step=hexed(step)))
    except OSError:  # the host gave up meanwhile
        pass
    control.close()


class Keeper:
    """The loop around one call: turns events into `Call`'s methods and its answers into messages."""

    def __init__(self, call: Call, links: Links, wake: int, control: socket.socket, gate: Gate, cgroup: Cgroup | None) -> None:
        self.call, self.links, self.wake, self.control, self.gate = call, links, wake, control, gate
        self.cgroup = cgroup
        self.told_kept = False
        self.tell_at = math.inf  # when the host is to hear that the ladder began
        self.answered = False  # the gate's socket is at its end: the command runs, or its child died
        self.poll = select.poll()
        self.actions = {
            wake: self.on_child,
            gate.sock.fileno(): self.on_gate,
            control.fileno(): self.on_control,
            links.life: call.lost,
        }
        if links.host >= 0:
            self.actions[links.host] = call.lost
        for fd in self.actions:
            self.poll.register(fd, select.POLLIN)

    def run(self) -> None:
        """Until the call is over; then sweep, report, and leave."""
        while not self.call.finish:
            wait = min(min(self.call.next_time(), self.tell_at) - time.monotonic(), LONGEST_POLL)
            ready = self.poll.poll(max(0, wait) * 1000)
            for fd, _ in ready:
                self.actions[fd]()
            if self.call.tick():
                self.tell_at = time.monotonic() + TELL_AFTER
            if self.tell_at <= time.monotonic():
                self.tell_stopping()
            if self.call.kept and not self.told_kept:
                self.hand_over()
        self.end()

    def tell(self, message: bytes) -> None:
        """Send, never waiting: a host that is gone or stuck is noticed by other means."""
        try:
            self.control.send(message)
        except OSError:
            pass

    def hand_over(self) -> None:
        """The call is over; from now on this keeper holds what it left."""
        self.told_kept = True
        call = self.call
        left = [describe(facts.pid) for facts in descendants(call.kernel) if facts.state != "Z"]
        if left:  # else they went just now, which `observe_children` will see
            status = "" if call.leader_status is None else call.leader_status
            out = int(call.drained_out)
            self.tell(
                encode("kept", status=status, exit_at=call.leader_at, at=time.monotonic(), drained_out=out, left=listing(left))
            )

    def tell_stopping(self) -> None:
        self.tell_at = math.inf
        self.tell(encode("stopping", cause=self.call.cause, at=self.call.delivered))

    def on_child(self) -> None:
        os.read(self.wake, 4096)
        left = self.call.observe_children()
        if self.call.leader_at is not None and not self.call.released:
            self.killed_at_gate()
        elif left:
            self.tell(encode("exited", at=self.call.leader_at))

    def on_gate(self) -> None:
        """The child's answers: set up, failed, or (by EOF) exec'd."""
        try:
            message = self.gate.sock.recv(256)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if message == b"set":
            self.on_set()
        elif message.startswith(b"fail"):
            _, number, step = message.split(b" ", 2)
            refuse(self.control, int(number), step.decode())
            self.call.finish = True
        elif message.startswith(b"x"):
            self.call.exec_error = message[2:].decode().replace(" ", ":")
        elif not message:
            self.answered = True
            self.poll.unregister(self.gate.sock.fileno())
            if not self.call.released:
                self.killed_at_gate()

    def on_set(self) -> None:
        """The child is set up and waits. It goes into its cgroup before anything of the command can run."""
        number = self.cgroup.take(self.gate.pid) if self.cgroup is not None else 0
        if number:
            refuse(self.control, number, "moving it into its cgroup")
            self.call.finish = True
        else:
            self.tell(encode("ready", keeper=os.getpid(), pid=self.gate.pid, starttime=self.gate.starttime))

    def killed_at_gate(self) -> None:
        """The child died before it was released: nothing ran, and nothing will."""
        self.tell(encode("killed"))
        self.call.finish = True

    def on_control(self) -> None:
        """The host's orders; EOF means that it gave the call up or died."""
        try:
            message = self.control.recv(256)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        order, _, value = message.partition(b" ")
        if order == b"go":
            self.on_go()
        elif order == b"stop":
            if self.call.stop("stopped", float(value)):
                self.tell_at = time.monotonic() + TELL_AFTER
        elif order == b"eof":
            self.call.eof()
        elif not order:
            self.call.lost()

    def on_go(self) -> None:
        """Release the child, unless it is dead already: after the release its death would prove nothing."""
        self.call.look_at_leader()
        if self.call.leader_at is None:
            self.call.release()
            self.gate.release()
        else:
            self.killed_at_gate()

    def end(self) -> None:
        """Sweep everything, then report what the kernel said."""
        call = self.call
        if not call.released:
            self.gate.sock.close()  # even a child that SIGKILL cannot reach yet will find the gate shut
        call.settle_cause()
        leftovers: list[tuple[int, int, int, str, str]] = []
        if not call.kernel.only_zombies():
            if call.leader_at is not None and not call.cause and call.released:
                leftovers = [describe(facts.pid) for facts in descendants(call.kernel) if facts.state != "Z"]
            if call.cause in ("stopped", "timed_out") and call.released:
                call.signals.append("SIGKILL")
            if self.cgroup is not None:
                self.cgroup.kill()
            try:  # the whole group at once, while the unreaped leader holds its number
                call.kernel.kill_group(call.leader, signal.SIGKILL)
            except OSError:
                pass
        swept = sweep(call.kernel, time.monotonic() + REAP_BOUND, self.pause, self.reaped)
        if self.cgroup is not None:
            self.end_cgroup(self.cgroup)
        self.report(swept, leftovers)

    def pause(self, seconds: float) -> None:
        """Between two rounds of the sweep. Without a grace it is begun before the host heard of the stop: now it takes time."""
        if self.tell_at <= time.monotonic():
            self.tell_stopping()
        pause_on(self.wake, seconds)

    def end_cgroup(self, cgroup: Cgroup) -> None:
        """No child is left; the cgroup's word is the second proof. It is the host that reports who should still be in it."""
        until = time.monotonic() + REAP_BOUND
        while cgroup.populated() and time.monotonic() < until:
            cgroup.kill()
            pause_on(self.wake, 0.001)
        cgroup.remove()

    def reaped(self, pid: int, status: int) -> None:
        if pid == self.call.leader and self.call.leader_at is None:
            self.call.leader_status, self.call.leader_at = status, time.monotonic()

    def report(self, swept: Swept, leftovers: list[tuple[int, int, int, str, str]]) -> None:
        call = self.call
        if call.released and not self.answered:
            self.on_gate()  # an exec's failure may still be unread
        self.tell(
            encode(
                "ended",
                cause=call.cause or "exited",
                released=int(call.released),
                exec=call.exec_error or "",
                status="" if call.leader_status is None else call.leader_status,
                exit_at=call.leader_at or "",
                delivered=call.delivered or "",
                at=time.monotonic(),
                signals=",".join(call.signals),
                drained_out=int(call.drained_out),
                left=listing(swept.left),
                leftovers=listing(leftovers),
            )
        )
