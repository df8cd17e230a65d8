"""The start gate: a child forked ahead of need, which sets itself up and then blocks until the one byte that lets it exec.

EOF instead of that byte, whoever died, makes it exit without exec: the proof that nothing ran. The same socket carries the
exec's answer: it is close-on-exec, so EOF means that the command runs, and a message says why it does not.
Child's messages: `set` (only if it is to go into a cgroup; else it tells the host itself) | `fail ERRNO STEP` (setting up), then
`x ERRNO FLAG` (exec). Keeper's: the request, then `g`.
"""

import os
import socket

from toolrunner.process.keeping.leader import NOT_RUN, wait_at_gate
from toolrunner.process.keeping.system import send_fds, stat


class Gate:
    """The keeper's side of a waiting child. `pid` is also the number of its session and group."""

    def __init__(self, pid: int, sock: socket.socket) -> None:
        self.pid = pid
        self.sock = sock
        facts = stat(pid)
        self.starttime = facts.starttime if facts else 0

    def hand_over(self, request: bytes, fds: list[int], kept: int) -> bool:
        """Pass the request on to the child, and keep one of the descriptors. False when the child is dead (it is reaped then)."""
        try:
            send_fds(self.sock, request, fds)
        except OSError:
            os.waitpid(self.pid, 0)
            return False
        for fd in fds:
            if fd != kept:
                os.close(fd)
        return True

    def release(self) -> None:
        """Let the child exec."""
        try:
            self.sock.send(b"g")
        except OSError:  # killed at the gate: its status tells
            pass


def fork_gate() -> Gate:
    """Fork a child to the gate. Raises OSError (EAGAIN: process limit; EMFILE)."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        pid = os.fork()
    except OSError:
        ours.close()
        theirs.close()
        raise
    if pid == 0:
        try:
            wait_at_gate(theirs.detach())
        finally:  # whatever happened, this is no second keeper
            os._exit(NOT_RUN)
    theirs.close()
    return Gate(pid, ours)
