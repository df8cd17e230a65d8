"""Moves bytes between a process's pipes and the host: readers for its output, a feed for its stdin.

A reader keeps a chunk before anyone else sees it, so nothing that was read is lost when a later step is cancelled.
"""

import logging
import math
import os
from collections.abc import Callable
from typing import final

import anyio
import anyio.lowlevel

from toolrunner.process.keeping.messages import DRAIN_BOUND
from toolrunner.process.output import Capture
from toolrunner.process.prepared import Observer, Sink
from toolrunner.process.terminal import end_of_input

_log = logging.getLogger("toolrunner.process")

CHUNK = 1 << 16
"""Bytes per read: the default size of a pipe."""

REOPEN_PAUSE = 0.05
"""Seconds between two looks at a terminal that nobody holds: few programs come back to one, and none writes much before."""

TURN = 16
"""Chunks read before other tasks get their turn: a tool that writes without end must not starve the loop, or its own stop."""


@final
class Reader:
    """Reads one stream to its end, for the capture, the observer and the sink. Owns the descriptor.

    `eof` is True once every writer closed it. `finish_by` bounds what is left to read; only time spent waiting for the tool
    counts against it, never time spent in the sink. Without a descriptor (None) the stream is at its end from the beginning.

    A `terminal` that nobody holds may be opened again by a process of its session (/dev/tty), so its end is final only when
    everything else is over.
    """

    def __init__(
        self,
        name: str,
        fd: int | None,
        capture: Capture,
        observer: Observer | None,
        sink: Sink | None,
        *,
        terminal: bool = False,
    ) -> None:
        self.name, self.fd, self.capture = name, -1 if fd is None else fd, capture
        self.eof = fd is None
        self.sink_dropped = 0
        self._done = fd is None
        self._terminal = terminal
        self._resting = False  # between two looks whether a terminal was opened again
        self._observer, self._sink = observer, sink
        self._sink_bound = math.inf  # seconds for one write to the sink
        self._deadline = math.inf
        self._scope: anyio.CancelScope | None = None
        self._sink_scope: anyio.CancelScope | None = None

    async def run(self, at_end: Callable[[], None]) -> None:
        """Until EOF or the deadline. Cancelled, it can be run again and goes on where it was."""
        turns = 0
        while not self._done:
            data = self._read()
            if data is None:
                turns = 0
                await self._wait()
            elif not data:
                self.eof = True
                self._done = not self._terminal or self._deadline != math.inf
                if not self._done:
                    at_end()
                    await self._rest()
            else:
                self.eof = False
                await self._pass_on(data)
                turns += 1
                if turns % TURN == 0:
                    await anyio.lowlevel.checkpoint()
                    self._done = anyio.current_time() > self._deadline
        at_end()

    def _read(self) -> bytes | None:
        """A chunk, b"" at EOF, None when nothing is there."""
        try:
            return os.read(self.fd, CHUNK)
        except BlockingIOError:
            return None
        except OSError:  # EIO: the other end of a terminal is gone
            return b""

    async def _wait(self) -> None:
        with anyio.CancelScope(deadline=self._deadline) as scope:
            self._scope = scope
            try:
                await anyio.wait_readable(self.fd)
            finally:
                self._scope = None
        self._done = scope.cancelled_caught

    async def _rest(self) -> None:
        """Leave a terminal that nobody holds alone for a while; nothing announces that it was opened again."""
        with anyio.CancelScope(deadline=anyio.current_time() + REOPEN_PAUSE) as scope:
            self._scope, self._resting = scope, True
            try:
                await anyio.sleep(REOPEN_PAUSE)
            finally:
                self._scope, self._resting = None, False

    async def _pass_on(self, data: bytes) -> None:
        self.capture.add(data)
        if self._observer is not None:
            try:
                self._observer(self.name, data)
            except Exception:  # noqa: BLE001 - foreign code; whatever it raises is its own affair
                _log.exception("an observer of process output raised; it gets no more of %s", self.name)
                self._observer = None
        if self._sink is not None:
            await self._to_sink(self._sink, data)
        elif self._sink_bound != math.inf:
            self.sink_dropped += len(data)

    async def _to_sink(self, sink: Sink, data: bytes) -> None:
        with anyio.CancelScope(deadline=anyio.current_time() + self._sink_bound) as scope:
            self._sink_scope = scope
            try:
                await sink.write(self.name, data)
            except Exception:  # noqa: BLE001 - foreign code; the tool's output is still kept
                _log.exception("the sink of process output raised; it gets no more of %s", self.name)
                self._sink = None
            finally:
                self._sink_scope = None
        if scope.cancelled_caught:
            self._sink = None
            self.sink_dropped += len(data)
        if self._deadline != math.inf:
            self._deadline = anyio.current_time() + DRAIN_BOUND

    def release_sink(self) -> None:
        """The call is being stopped: no write to the sink may last longer than `DRAIN_BOUND` from now on."""
        if self._sink is not None and self._sink_bound == math.inf:
            self._sink_bound = DRAIN_BOUND
            if self._sink_scope is not None:
                self._sink_scope.deadline = anyio.current_time() + DRAIN_BOUND

    def finish_by(self, deadline: float) -> None:
        """Wait for more until this time of the loop's clock at most."""
        self._deadline = deadline
        if self._scope is not None:
            self._scope.deadline = -math.inf if self._resting else deadline

    def close(self) -> None:
        """Close the pipe: a writer that is left gets SIGPIPE."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            self.capture.close()


@final
class Feed:
    """Writes to stdin with backpressure. A tool that stops reading ends it quietly (EPIPE).

    `data` is written and then the end of input is given; `stays` leaves it open for `write`. `terminal`: what is written is
    typed, and the end of input is a key. Owns the descriptor; one writer at a time.
    """

    def __init__(self, fd: int, data: bytes, *, stays: bool = False, terminal: bool = False) -> None:
        self._fd = fd
        self._rest = memoryview(data)
        self._stays, self._terminal = stays, terminal
        self._at_line_start = True
        self._turn = anyio.Lock()
        self._scope: anyio.CancelScope | None = None
        self._closing = False

    async def run(self) -> None:
        """Until everything is written, the tool stops reading, or `close`. Cancelled, it can be run again."""
        if not self._stays:
            await self._flush()
            self.end_input()

    async def write(self, data: bytes) -> int:
        """Write all of it, after what others are writing. How many bytes were taken: fewer when there is no reader (any more).

        Cancelled, a part of it may have been written.
        """
        if not self._stays:
            return 0
        async with self._turn:
            self._rest = memoryview(data)
            try:
                await self._flush()
                return len(data) - len(self._rest)
            finally:
                self._rest = memoryview(b"")

    async def _flush(self) -> None:
        while self._rest and self._fd >= 0:
            try:
                written = os.write(self._fd, self._rest[:CHUNK])
            except BlockingIOError:
                await self._wait()
            except OSError:
                self._shut()
            else:
                self._at_line_start = self._rest[written - 1] in b"\r\n"
                self._rest = self._rest[written:]

    async def _wait(self) -> None:
        with anyio.CancelScope() as scope:
            self._scope = scope
            try:
                await anyio.wait_writable(self._fd)
            finally:
                self._scope = None
        if self._closing:
            self._shut()

    def end_input(self) -> None:
        """Nothing more will be written; the reader is told so."""
        if self._terminal and self._fd >= 0 and not self._closing:
            try:
                os.write(self._fd, end_of_input(self._fd, at_line_start=self._at_line_start))
            except OSError:  # it reads nothing anyway: gone, or its input is full
                pass
        self.close()

    def forget(self) -> None:
        """Close the descriptor, whatever waits for it: that is another process's affair."""
        self._shut()

    def _shut(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def close(self) -> None:
        """Close stdin now, the first step of the ladder."""
        if self._scope is not None:  # the descriptor is in the event loop's hands: let the waiter go first
            self._closing = True
            self._scope.cancel()
        else:
            self._shut()
