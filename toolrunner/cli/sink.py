"""Our own stdout and stderr: bytes written in full, in order, by a thread for each, so that a slow reader never holds the loop.

State: one queue for each `Writer`, filled on the loop, emptied by its thread. Not non-blocking descriptors: that flag belongs to
the open file, which we share with whoever started us. The threads are daemons: one that hangs in write(2), because its reader
neither reads nor leaves, must not keep us from exiting.
"""

import errno
import os
import queue
import select
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

import anyio

from toolrunner.abort import AbortSignal
from toolrunner.loops import poster

LAST_WORDS = 1.0
"""Seconds that a write may still take once somebody insisted that we end. A reader that is there needs milliseconds."""

_Done = Callable[[OSError | None], None]


@final
class Writer:
    """One descriptor. `error` is the first error of a write; after it nothing more is written."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.is_terminal = os.isatty(fd)
        self.error: OSError | None = None
        self.at_line_start = True
        """Whether the last byte given to it ended a line; so a report does not begin in the middle of one."""
        self._jobs: queue.SimpleQueue[tuple[bytes, _Done | None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def write(self, data: bytes) -> None:
        """Write all of it. Raises OSError. Cancelled, it stops waiting; what was given may still be written."""
        event = anyio.Event()
        post = poster()

        def done(_: OSError | None) -> None:
            try:
                post(event.set)
            except RuntimeError:  # the loop is gone, and whoever waited with it
                pass

        self._give(data, done)
        await event.wait()
        if self.error is not None:
            raise self.error

    def say(self, data: bytes) -> None:
        """Write it soon; nobody waits, and nobody is told of an error."""
        self._give(data, None)

    def _give(self, data: bytes, done: _Done | None) -> None:
        if data:
            self.at_line_start = data.endswith(b"\n")
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"writer-{self.fd}", daemon=True)
            self._thread.start()
        self._jobs.put((data, done))

    def _work(self) -> None:
        while True:
            data, done = self._jobs.get()
            rest = memoryview(data)
            try:
                while rest and self.error is None:
                    rest = rest[os.write(self.fd, rest) :]
            except OSError as error:
                self.error = error
            if done is not None:
                done(self.error)


@final
class Pause:
    """While a question stands at the terminal nothing else is written there. State: how many do."""

    def __init__(self) -> None:
        self._held = 0
        self._over = anyio.Event()

    @contextmanager
    def held(self) -> Iterator[None]:
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            if not self._held:
                self._over.set()
                self._over = anyio.Event()

    @property
    def is_on(self) -> bool:
        return self._held > 0

    async def over(self) -> None:
        """Wait until nobody is asked; a question has a limit of its own."""
        while self._held:
            await self._over.wait()


@final
class PassThrough:
    """A sink for a command's output: each stream to ours. `failed` is called once, when one of them cannot be written to."""

    def __init__(
        self, stdout: Writer, stderr: Writer, failed: Callable[[str, OSError], object], pause: Pause | None = None
    ) -> None:
        self._writers = {"stdout": stdout, "stderr": stderr}
        self._pause = pause if pause is not None else Pause()
        self._failed: Callable[[str, OSError], object] | None = failed

    async def write(self, stream: str, data: bytes) -> None:
        """Hold the command back until it is written. After an error the rest goes nowhere: the call is being stopped for it."""
        await self._pause.over()
        try:
            await self._writers[stream].write(data)
        except OSError as error:
            failed, self._failed = self._failed, None
            if failed is not None:
                failed(stream, error)


async def write_last(writer: Writer, data: bytes, hurry: AbortSignal) -> None:
    """Write what must be said before we end: as long as it takes, but only `LAST_WORDS` once somebody insists.

    Raises OSError; a write that is given up raises TimeoutError, which is one.
    """
    with anyio.CancelScope() as scope:

        def insist() -> None:
            scope.deadline = anyio.current_time() + LAST_WORDS

        unsubscribe = hurry.on_abort(insist)
        try:
            await writer.write(data)
        finally:
            unsubscribe()
    if scope.cancelled_caught:
        raise TimeoutError("nobody reads it")


async def reader_gone(fd: int) -> None:
    """Wait until nobody can read any more what is written to the pipe `fd`, and raise BrokenPipeError; for ever if it is no pipe.

    The write end of a pipe is "ready" (EPOLLERR, pipe(7)) as soon as its last read end is closed.
    """
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        await anyio.sleep_forever()
    poll = select.poll()
    poll.register(fd, 0)
    while not any(events & select.POLLERR for _, events in poll.poll(0)):
        await anyio.wait_readable(fd)
    raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
