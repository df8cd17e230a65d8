"""Scene: the victims of one trial, from birth to the proof of death. Owns a folder, FIFOs, pidfds; `close` ends everything.

A FIFO reads end of file when the kernel has closed the last descriptor of those who wrote to it, which happens when they die.
Only somebody alive can open it again, so what reads end of file once is gone for good. Processes without a FIFO are watched
through a pidfd, and looked for by the token in their arguments: more than once, as a single look can miss one that moves.
"""

import itertools
import os
import secrets
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self, final

import anyio

from benchmarks.victims.shapes import Argv, Shape

BIRTH_BOUND = 20.0
"""Seconds for all victims to be where they should be; 200 interpreters' forks on a busy machine take about one."""

PAUSE = 0.002
"""Seconds between two looks at what nothing announces."""

CLEAN_BOUND = 10.0
"""Seconds to end what somebody left."""

RUN = secrets.randbelow(10**8)
"""Marks every victim of this process of ours, so that a last look finds whatever any trial left."""

_numbers = itertools.count()


def seen(token: str) -> list[int]:
    """Processes, zombies excepted, with `token` in their arguments."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and token.encode() in arguments_of(pid)]


def arguments_of(pid: int) -> bytes:
    """The command line; empty for a zombie and for what is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def marked() -> str:
    """The token that all victims of this run have in common."""
    return f"600.{RUN:08d}"


def state_of(pid: int) -> str:
    """The state letter of /proc/PID/stat (proc(5)); "X" when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="latin-1").rpartition(")")[2].split()[0]
    except OSError:
        return "X"


@final
class Scene:
    """Use as a context manager. Start `commands`, `await born()`, stop them, ask who is `alive` or `left`."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.token = f"{marked()}{next(_numbers):06d}"
        self._folder = Path(tempfile.mkdtemp(prefix="tr-bench-"))
        self._fifos: dict[int, int] = {}  # read end -> number
        self._hidden: list[int] = []  # pidfds
        self._entered = False
        self._closed = False
        for number in range(shape.lifelines):
            path = self._folder / str(number)
            os.mkfifo(path)
            self._fifos[os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)] = number

    @property
    def commands(self) -> list[Argv]:
        """What to start."""
        return list(self.shape.commands(str(self._folder), self.token))

    async def born(self) -> None:
        """Wait until every victim is where it should be. Raises TimeoutError."""
        with anyio.fail_after(BIRTH_BOUND):
            for fd in self._fifos:
                await self._first_byte(fd)
            if self.shape.hidden:
                while not (pids := [pid for pid in seen(self.token) if arguments_of(pid).startswith(b"sleep")]):
                    await anyio.sleep(PAUSE)
                self._hidden = [os.pidfd_open(pid) for pid in pids]
            if self.shape.stopped:
                while not self._all_stopped():
                    await anyio.sleep(PAUSE)
            if self.shape.leader_goes:
                before = len(seen(self.token))
                (self._folder / "go").touch()
                while len(seen(self.token)) >= before:
                    await anyio.sleep(PAUSE)

    def _all_stopped(self) -> bool:
        """As many as there are lifelines: what wraps them, bwrap say, has the token in its arguments too and runs."""
        return sum(state_of(pid) == "T" for pid in seen(self.token)) >= self.shape.lifelines

    async def _first_byte(self, fd: int) -> None:
        while True:
            try:
                if os.read(fd, 1):
                    return
                await anyio.sleep(PAUSE)  # with no writer yet it reads as end of file: there is nothing to wait on
            except BlockingIOError:
                await anyio.wait_readable(fd)

    def alive(self, wait: float = 0.0) -> int:
        """How many lifelines and hidden victims are alive after at most `wait` seconds, in which the thread is blocked."""
        poll = select.poll()
        # Read first: poll(2) says nothing of a FIFO that nobody ever opened, and read(2) says that it has no writer.
        waiting = {fd for fd in self._fifos if not self._at_end(fd)} | set(self._hidden)
        for fd in waiting:
            poll.register(fd, select.POLLIN)
        end = time.perf_counter() + wait
        while waiting:
            for fd, _ in poll.poll(max(0.0, end - time.perf_counter()) * 1000):
                if fd in self._hidden or self._at_end(fd):
                    poll.unregister(fd)
                    waiting.discard(fd)
            if time.perf_counter() >= end:
                break
        return len(waiting)

    def _at_end(self, fd: int) -> bool:
        try:
            while os.read(fd, 64):
                self._entered = True
        except BlockingIOError:
            self._entered = True  # no byte, but a writer
            return False
        return True

    def left(self, settle: float) -> int:
        """How many victims live: by lifelines and pidfds, or by their arguments, whichever shows more.

        What is found at first may be dying; what is found `settle` seconds later was missed.
        """
        if not self.alive() and not seen(self.token):
            return 0
        time.sleep(settle)
        return max(self.alive(), len(seen(self.token)))

    def was_entered(self) -> bool:
        """Whether any victim ever opened its lifeline, for scenes that nobody waited for."""
        self.alive()
        return self._entered

    def close(self) -> None:
        """End whatever is left, and give back our own. Idempotent. Raises RuntimeError if something cannot be ended."""
        if self._closed:
            return
        self._closed = True
        shutil.rmtree(self._folder)  # moving targets stop when their lifeline's name is gone
        end = time.perf_counter() + CLEAN_BOUND
        while (pids := seen(self.token)) or self.alive():
            for pid in pids:
                self._kill(pid)
            if time.perf_counter() > end:
                raise RuntimeError(f"victims of shape {self.shape.name!r} cannot be ended: {pids}")
            time.sleep(PAUSE)
        for fd in (*self._fifos, *self._hidden):
            os.close(fd)
        self._fifos.clear()
        self._hidden.clear()

    def _kill(self, pid: int) -> None:
        """Through a descriptor, whose process is looked at after opening, so that no number is ever hit that was given away."""
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return
        try:
            if self.token.encode() in arguments_of(pid):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
        except OSError:
            pass
        finally:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
