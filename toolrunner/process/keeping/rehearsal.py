"""A call that is only played: every step that a real one takes, on a kernel in which nothing happens to anybody. No state.

After a fork the first write to a page is a fault that copies it (1 to 3 us each, some 150 of them in a call), and in Python
reading is writing, because references are counted. So an idle keeper goes through a call once before one comes. The warden does
it several times before it forks anybody: what the interpreter learns about the code is then in pages that stay shared.
"""

import os
import signal
import socket

from toolrunner.process.keeping.call import Call
from toolrunner.process.keeping.gate import Gate
from toolrunner.process.keeping.keeper import Keeper, Links
from toolrunner.process.keeping.ladder import STEPS
from toolrunner.process.keeping.messages import SAMPLE, decode
from toolrunner.process.keeping.system import Kernel, receive, send_fds

PLAYS = 12
"""Times the warden plays it: the interpreter specialises code that has run eight times (3.11), some of it in a second step."""

BOUND = 1.0
"""Seconds after which the played call times out, should one of its orders get lost."""


class Stage(Kernel):
    """The kernel as it is, except that nobody is signalled or reaped."""

    def kill(self, pid: int, number: int) -> None:
        pass

    def kill_group(self, group: int, number: int) -> None:
        pass

    def signal_other(self, pid: int, starttime: int, number: int) -> bool:  # noqa: ARG002 - the signature of the real one
        return True

    def reap(self, pid: int = -1) -> tuple[int, int]:  # noqa: ARG002 - the same
        raise ChildProcessError


def rehearse(links: Links, wake: int, pid: int) -> None:
    """Play a call whose leader is `pid`, from the request to the report. Never raises; without descriptors it stays undone."""
    try:
        control, host = pair()
        gate, child = pair()
    except OSError:
        return
    try:
        play(Gate(pid, gate), (control, host), child, links, wake)
    except OSError:
        pass
    for sock in (control, host, gate, child):
        sock.close()


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends, neither of which ever blocks."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    theirs.setblocking(False)
    return ours, theirs


def play(gate: Gate, control: tuple[socket.socket, socket.socket], child: socket.socket, links: Links, wake: int) -> None:
    """The call. Everybody's lines are said beforehand, and then the keeper answers them in its own order."""
    keeper_end, host = control
    send_fds(host, SAMPLE, [wake])
    request, fds = receive(keeper_end)
    words = decode(request)[1]
    gate.hand_over(request, fds, -1)
    receive_all(child)
    child.send(b"set")
    for order in (b"go", b"stop 2.0", b"eof", b"stop 0"):
        host.send(order)
    signal.raise_signal(signal.SIGCHLD)
    call = Call(Stage(), gate.pid, BOUND, float(words["grace"]), STEPS)
    Keeper(call, links, wake, keeper_end, gate, None).run()


def receive_all(sock: socket.socket) -> None:
    """What was handed over is closed again."""
    for fd in receive(sock)[1]:
        os.close(fd)
