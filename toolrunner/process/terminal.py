"""A terminal for one process: opened, sized, and told that no more input comes. No state.

The host keeps the master; the tool gets the slave as its standard streams, and the gate makes it the session's controlling
terminal. Everything here is synchronous and never waits (pty(7), tty_ioctl(2), termios(3)).
"""

import os
from contextlib import ExitStack

from toolrunner.process.ending import SpawnErrorKind, SpawnRefused
from toolrunner.process.plan import WindowSize

try:
    import fcntl
    import struct
    import termios
except ImportError:  # Windows: import must work, process tools refuse
    termios = None  # type: ignore[assignment]

EOF_KEY = b"\x04"
"""Ctrl-D, what VEOF is unless the program changed it."""


def open_terminal(size: WindowSize, sent: ExitStack, kept: ExitStack) -> tuple[int, int]:
    """Our end (non-blocking) and the tool's end of a new terminal of this size. Raises SpawnRefused."""
    try:
        master, slave = os.openpty()  # close-on-exec, and nobody's controlling terminal yet (O_NOCTTY)
    except OSError as exc:  # every number is taken (/proc/sys/kernel/pty/max), or no devpts is mounted
        raise SpawnRefused(SpawnErrorKind.SETUP, f"a terminal: {exc.strerror or exc}", exc.errno) from exc
    kept.callback(os.close, master)
    sent.callback(os.close, slave)
    os.set_blocking(master, False)
    set_size(master, size)
    return master, slave


def set_size(fd: int, size: WindowSize) -> None:
    """Set the window size; the kernel sends SIGWINCH to the foreground group if it is another one. Raises OSError."""
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))


def end_of_input(fd: int, *, at_line_start: bool) -> bytes:
    """What to type so that a reader of lines sees the end of its input.

    In a line that has begun the first one only hands that line over, so it takes two. A program that reads keys (no ICANON)
    has no end of input: there it would be one more key, so nothing is typed.
    """
    try:
        modes = termios.tcgetattr(fd)
    except termios.error:
        return b""
    if not modes[3] & termios.ICANON:
        return b""
    key = modes[6][termios.VEOF]
    return (key if isinstance(key, bytes) else EOF_KEY) * (1 if at_line_start else 2)
