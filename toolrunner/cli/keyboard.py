"""Our terminal, lent to a command that has one of its own (`run --tty`): every key goes there, and its size follows ours.

State: the modes that our terminal had, while it is raw; put back whatever happens. Ctrl-C is the command's key then, as under
script(1) and `docker run -t`; so that a person can still stop it, Ctrl-] three times within a second asks us (systemd-nspawn(1)
has the same), and three times more insists.
"""

import atexit
import os
import signal
import termios
import time
import tty
from collections import deque
from collections.abc import Callable
from typing import Any, final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from toolrunner.process import LaunchPlan, Observer, Prepared, Processes, Sink, WindowSize

ESCAPE = 0x1D
"""Ctrl-]: telnet's and nspawn's; hardly a program has a use for it."""

ESCAPE_TIMES = 3
ESCAPE_WITHIN = 1.0
"""So often within so many seconds: nobody types that by accident."""

STREAMS = (0, 1, 2)

CHUNK = 1024
BACKLOG = 1024
"""Chunks of keys kept for a command that does not read them; then they are dropped, as a terminal drops them much earlier."""


def our_size() -> WindowSize | None:
    """The size of our terminal, or None when none of our streams is one. A terminal that does not know its size has the usual."""
    for fd in STREAMS:
        try:
            found = os.get_terminal_size(fd)
        except OSError:
            continue
        return WindowSize(found.lines, found.columns) if found.lines and found.columns else WindowSize()
    return None


@final
class Escape:
    """Counts Ctrl-]."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=ESCAPE_TIMES)

    def pressed_in(self, keys: bytes) -> bool:
        """Whether these keys complete the escape."""
        for key in keys:
            self._times.append(time.monotonic() if key == ESCAPE else -ESCAPE_WITHIN)
            if len(self._times) == ESCAPE_TIMES and time.monotonic() - self._times[0] <= ESCAPE_WITHIN:
                self._times.clear()
                return True
        return False


@final
class Raw:
    """The modes of our terminal. `switched` is told with each change."""

    def __init__(self, fd: int, switched: Callable[[bool], object]) -> None:
        self._fd, self._switched = fd, switched
        self._before: list[Any] | None = None

    def enter(self) -> None:
        """Every key comes to us as it is. Again after a stop (SIGSTOP): our shell had its own modes meanwhile."""
        before = termios.tcgetattr(self._fd)
        if self._before is None:
            self._before = before
            atexit.register(self.restore)
        tty.setraw(self._fd, termios.TCSADRAIN)
        self._switched(True)

    def again(self) -> None:
        """We go on after a stop."""
        if self._before is not None:
            tty.setraw(self._fd, termios.TCSADRAIN)

    def restore(self) -> None:
        """Put back what was. Any number of times, also from a signal's action just before we leave."""
        before, self._before = self._before, None
        if before is None:
            return
        atexit.unregister(self.restore)
        action = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # in the background the change would stop us instead
        try:
            termios.tcsetattr(self._fd, termios.TCSANOW, before)
        except termios.error:  # it is gone, and its modes with it
            pass
        finally:
            signal.signal(signal.SIGTTOU, action)
            self._switched(False)


@final
class Seat:
    """The person at our terminal, in front of the command's. Stands between Runner and supervisor to meet its process."""

    def __init__(self, processes: Processes, raw: Raw | None, stop: Callable[[], object]) -> None:
        self._processes, self._raw, self._stop = processes, raw, stop
        self._prepared: Prepared | None = None
        self._ready = anyio.Event()

    async def prepare(
        self, plan: LaunchPlan, *, dirfd: int | None = None, on_output: Observer | None = None, sink: Sink | None = None
    ) -> Prepared:
        """Prepare the command, and let the keys be its own from now on."""
        self._prepared = await self._processes.prepare(plan, dirfd=dirfd, on_output=on_output, sink=sink)
        if self._raw is not None:
            self._raw.enter()
        self._ready.set()
        return self._prepared

    async def aclose(self) -> None:
        """Everything is over."""
        await self._processes.aclose()

    async def serve(self) -> None:
        """Until cancelled."""
        await self._ready.wait()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow_size)
            if self._raw is not None:
                send, receive = anyio.create_memory_object_stream[bytes](BACKLOG)
                tasks.start_soon(self._read_keys, send)
                tasks.start_soon(self._type, receive)

    async def _follow_size(self) -> None:
        assert self._prepared is not None
        with anyio.open_signal_receiver(signal.SIGWINCH, signal.SIGCONT) as received:
            self._resize()  # it may have changed since the command was prepared
            async for number in received:
                if number == signal.SIGCONT and self._raw is not None:
                    self._raw.again()
                self._resize()

    def _resize(self) -> None:
        size = our_size()
        if size is not None and self._prepared is not None:
            self._prepared.resize(size)

    async def _read_keys(self, keys: MemoryObjectSendStream[bytes]) -> None:
        """Never waits for the command: the escape must be heard while it does not read."""
        escape = Escape()
        while True:
            await anyio.wait_readable(0)
            try:
                data = os.read(0, CHUNK)
            except OSError:  # hung up; SIGHUP says the rest
                return
            if not data:
                return
            if escape.pressed_in(data):
                self._stop()
            try:
                keys.send_nowait(data)
            except anyio.WouldBlock:
                continue

    async def _type(self, keys: MemoryObjectReceiveStream[bytes]) -> None:
        assert self._prepared is not None
        async for data in keys:
            await self._prepared.write(data)
