"""Sleeping until a child dies: what warden and keepers wait on. The signal's action is set here and nowhere else."""

import os
import select
import signal


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
