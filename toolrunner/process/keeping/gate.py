"""The start gate: a child forked ahead of need, which sets itself up and then blocks until the one byte that lets it exec.

EOF instead of that byte, whoever died, makes it exit without exec: the proof that nothing ran. The same socket carries the
exec's answer: it is close-on-exec, so EOF means that the command runs, and a message says why it does not.
Child's messages: `set` (only if it is to go into a cgroup; else it tells the host itself) | `fail ERRNO STEP` (setting up), then
`x ERRNO FLAG` (exec). Keeper's: the request, then `g`.
"""

import os
import signal
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
        """Pass the request on to the child, and keep one of the descriptors. False: the child has nothing of it.

        It may be dead, or live: of a user without privileges no more descriptors may be under way than one process may have open
        (ETOOMANYREFS, unix(7)), and a burst of requests is that many.
        """
        try:
            send_fds(self.sock, request, fds)
        except OSError:
            return False
        close_but(fds, kept)
        return True

    def end(self) -> None:
        """Be rid of a child that got no request. By SIGKILL, so that one that was stopped is not waited for."""
        self.sock.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def release(self) -> None:
        """Let the child exec."""
        try:
            self.sock.send(b"g")
        except OSError:  # killed at the gate: its status tells
            pass


def close_but(fds: list[int], kept: int) -> None:
    """Close descriptors of a request, which its child has by now."""
    for fd in fds:
        if fd != kept:
            os.close(fd)


def fork_gate(request: bytes = b"", fds: list[int] | None = None) -> Gate:
    """Fork a child to the gate: ahead of need, or for a request that is there, which it then has by the fork itself.

    Raises OSError (EAGAIN: process limit; EMFILE).
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        pid = os.fork()
    except OSError:
        ours.close()
        theirs.close()
        raise
    if pid == 0:
        try:
            wait_at_gate(theirs.detach(), request, fds or [])
        finally:  # whatever happened, this is no second keeper
            os._exit(NOT_RUN)
    theirs.close()
    return Gate(pid, ours)
