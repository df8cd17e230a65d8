"""Who wakes whom: a child's death wakes its keeper or warden, an idle keeper wakes a warden that was stopped at the end.

SIGCHLD's action is set here and nowhere else.
"""

import os
import select
import signal
import socket
import time

from toolrunner.process.keeping.messages import REAP_BOUND


def wake_pipe() -> int:
    """A descriptor that becomes readable at every SIGCHLD of this process."""
    read_end, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read_end


def pause_on(wake: int, seconds: float) -> None:
    """Sleep, at most until a child dies."""
    if select.select([wake], [], [], seconds)[0]:
        os.read(wake, 4096)


def is_asked(requests: socket.socket) -> bool:
    """Whether a request waits for somebody to take it."""
    try:
        return bool(requests.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except OSError:
        return False


def is_served(requests: socket.socket) -> bool:
    """Whether the host is still at the other end, so that an idle keeper that leaves does so because nobody needs it."""
    try:
        return bool(requests.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return True
    except OSError:
        return False


def see_off(warden: int) -> None:
    """The host is gone: wake the warden until it ends us, its last act but one.

    The host's death wakes it once (PR_SET_PDEATHSIG); a tool that stops it right after that would leave it, and the tool, for
    good. We are idle, so no tool of ours can have stopped us.
    """
    until = time.monotonic() + REAP_BOUND + 1.0  # the warden's own bound for its close, and a moment more
    while os.getppid() == warden and time.monotonic() < until:
        os.kill(warden, signal.SIGCONT)
        select.select([], [], [], 0.01)
