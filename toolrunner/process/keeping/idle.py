"""An idle keeper: waits with a child at the gate, has gone through everything once, takes one request and becomes a busy one.

What a call will need is done ahead of need: the fork of the child, and the first write to each page that a call will write to,
which after a fork is a page fault. State: none; what it has comes from its warden and is handed to its `Keeper`.
"""

import errno
import os
import signal
import socket

from toolrunner.process.keeping.call import Call
from toolrunner.process.keeping.cgroup import Cgroup
from toolrunner.process.keeping.gate import Gate, close_but, fork_gate
from toolrunner.process.keeping.keeper import Keeper, Links, refuse
from toolrunner.process.keeping.ladder import STEPS, TERMINAL_STEPS
from toolrunner.process.keeping.messages import decode
from toolrunner.process.keeping.rehearsal import rehearse
from toolrunner.process.keeping.system import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_NAME,
    PR_SET_PDEATHSIG,
    Cut,
    Kernel,
    prctl,
    receive,
)
from toolrunner.process.keeping.waking import is_asked, is_served, see_off, wake_pipe


def keep(kernel: Kernel, links: Links, *, stays: bool) -> None:
    """The whole life of a keeper. One that does not `stay` leaves when nobody needs it for a while (the socket's time-out)."""
    warden = os.getppid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_NAME, b"tr-keeper")
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # idle, it serves nobody without its warden
    wake = wake_pipe()
    if os.getppid() != warden:
        return
    gate = try_fork_gate()
    if isinstance(gate, Gate) and not is_asked(links.requests):
        rehearse(links, wake, gate.pid)  # after the fork, which would make everything shared again
    request, fds = wait_for_request(links.requests, stays=stays)
    if request:
        serve(kernel, links, wake, gate, request, fds)
        return
    if isinstance(gate, Gate):
        gate.end()
    if not is_served(links.requests):
        see_off(warden)


def try_fork_gate(request: bytes = b"", fds: list[int] | None = None) -> Gate | OSError:
    """A child at the gate, or why there is none: told when a request needs it."""
    try:
        return fork_gate(request, fds)
    except OSError as exc:
        return exc


def wait_for_request(requests: socket.socket, *, stays: bool) -> tuple[bytes, list[int]]:
    """Block until a request comes; empty when it is time to leave. Blocking receivers queue up: one message wakes one keeper."""
    while True:
        try:
            return receive(requests)
        except BlockingIOError:  # SO_RCVTIMEO
            if not stays:
                return b"", []
        except Cut as cut:
            for fd in cut.reply:
                refuse(socket.socket(fileno=fd), errno.EMFILE, "descriptors of the request")
        except OSError:
            return b"", []


def serve(kernel: Kernel, links: Links, wake: int, gate: Gate | OSError, request: bytes, fds: list[int]) -> None:
    """Hand the request to the child at the gate and hold the call."""
    words = decode(request)[1]
    cgroup = Cgroup(fds.pop(2), words["cgroup"]) if words["cgroup"] else None
    if isinstance(gate, OSError) or not gate.hand_over(request, fds, fds[1]):
        if isinstance(gate, Gate):
            gate.end()
        gate = try_fork_gate(request, fds)  # there was none, something killed it, or it could not be sent the descriptors
        close_but(fds, fds[1])
    control = socket.socket(fileno=fds[1])
    control.setblocking(False)
    become_busy(links)  # while the child sets itself up
    if isinstance(gate, OSError):
        refuse(control, gate.errno or errno.EAGAIN, "fork")
        return
    gate.sock.setblocking(False)
    steps = TERMINAL_STEPS if words["tty"] == "1" else STEPS
    call = Call(kernel, gate.pid, float(words["timeout"]), float(words["grace"]), steps, keep=words["keep"] == "1")
    call.own = int(words["own"])
    Keeper(call, links, wake, control, gate, cgroup).run()


def become_busy(links: Links) -> None:
    """From now on it is about a call."""
    prctl(PR_SET_PDEATHSIG, signal.SIGCONT)  # busy, it sweeps when the warden dies, even if a tool has stopped it
    os.write(links.notes, b"%d\n" % os.getpid())
    links.requests.close()  # the last receiver's end must close when warden and idle keepers are gone
