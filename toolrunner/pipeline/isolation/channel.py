"""The worker's end of the channel: sends from any thread, receives in one.

State: the descriptor, and who may use it. It is a plain number that the tool's own code can close and the kernel give away again,
and a forked child has it too, so before each use it is checked that this is still that socket and still that process: an answer
must not be written into a file of the tool's, nor come from a process that is not the worker.
"""

import fcntl
import os
import threading
from typing import final

from toolrunner.pipeline.isolation.messages import FromWorker, frame

CHUNK = 1 << 16

HIGH = 512
"""The descriptor is moved to the first free number from here on, out of the way of what the tool opens and closes."""


class ChannelLost(Exception):
    """The host cannot be reached: it is gone, the tool closed the descriptor, or this is a fork of the worker."""


def file_identity(fd: int) -> tuple[int, int] | None:
    """Device and inode behind a descriptor; None when it is closed."""
    try:
        facts = os.fstat(fd)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


@final
class Channel:
    """One stream socket to the host."""

    def __init__(self, fd: int) -> None:
        try:
            self._fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH)
        except OSError:  # a low limit of open files
            self._fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
        os.close(fd)  # it had to survive the exec; nothing that the tool starts may have it
        self._pid = os.getpid()
        self._identity = file_identity(self._fd)
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forked)

    def fileno(self) -> int:
        """The descriptor. Raises ChannelLost when it is not the channel any more."""
        if os.getpid() != self._pid:
            raise ChannelLost("this is a fork of the worker")
        if file_identity(self._fd) != self._identity:
            raise ChannelLost("the tool closed its worker's channel")
        return self._fd

    def send(self, message: FromWorker) -> None:
        """Send a message; blocks while the host does not read. Raises ChannelLost, or BadFrame for what cannot be sent."""
        rest = memoryview(frame(message))
        with self._lock:
            fd = self.fileno()
            try:
                while rest:
                    rest = rest[os.write(fd, rest) :]
            except OSError as error:
                raise ChannelLost(os.strerror(error.errno or 0)) from error

    def receive(self) -> bytes:
        """Some bytes; b"" at the end. Blocks. Raises ChannelLost."""
        try:
            return os.read(self.fileno(), CHUNK)
        except OSError as error:
            raise ChannelLost(os.strerror(error.errno or 0)) from error

    def _forked(self) -> None:
        """In a child of the tool's: drop the copy, or the host would wait for its end; its lock may be held by nobody here."""
        self._lock = threading.Lock()
        if file_identity(self._fd) == self._identity:
            os.close(self._fd)
