"""How a test knows that processes are alive or dead without sleeping.

A `Lifeline` is a FIFO. The command under test opens its write end and says so with one byte; every descendant inherits that end.
End of file at the read end is then the kernel's word that the last of them is gone, whatever session, group or parent it had.
`survivors` is the second opinion, for commands that close everything: it looks for a sleep length that nobody else uses.
"""

import itertools
import os
import select
import shlex
import time
from pathlib import Path
from typing import Self, final

import anyio
import kernel

BOUND = 60.0  # for a fact that is a matter of milliseconds; nobody but a hang waits it out
_counter = itertools.count(1)


def unique_duration() -> str:
    """Return a length for `sleep` of about 613 s which no other test, session or user has in an argument list."""
    return f"613.{os.getpid()}{next(_counter):04d}"


@final
class Lifeline:
    """The read end of a FIFO in `folder`. Use as a context manager; the file goes with it.

    Start `sh -c f"{line.sh}; sleep 613"`, then `await line.opened()`, stop it, `assert line.is_gone()` or `await line.gone()`.
    """

    def __init__(self, folder: Path, descriptor: int = 9) -> None:
        self.path = folder / f"lifeline-{next(_counter)}"
        os.mkfifo(self.path)
        self.path.chmod(0o666)  # a command that runs as a plain user must be able to open it
        # Non-blocking, or this open would wait for the first writer.
        self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._descriptor = descriptor

    @property
    def sh(self) -> str:
        """A shell command that ties the shell and all it starts from then on to this line."""
        return f"exec {self._descriptor}>{shlex.quote(str(self.path))}; printf x >&{self._descriptor}"

    @property
    def python(self) -> str:
        """Python statements, on one line, that do the same for an interpreter; `os.execvp` and forks keep the line."""
        return f"import os; _fd = os.open({str(self.path)!r}, os.O_WRONLY); os.set_inheritable(_fd, True); os.write(_fd, b'x')"

    async def opened(self, writers: int = 1) -> None:
        """Wait until so many writers said that they are there."""
        with anyio.fail_after(BOUND):
            for _ in range(writers):
                while not await self._read():  # noqa: ASYNC110 - with no writer yet it reads as end of file: nothing to wait on
                    await anyio.sleep(0.001)

    async def gone(self, bound: float = BOUND) -> None:
        """Wait for end of file: no process holds the write end any more. Call it after `opened`."""
        with anyio.fail_after(bound):
            while await self._read():
                pass

    def is_gone(self) -> bool:
        """Say whether it is so right now: the check for "nothing was left when the result came". Call it after `opened`."""
        while True:
            try:
                if not os.read(self._fd, 1):
                    return True
            except BlockingIOError:
                return False

    def wait_opened(self) -> None:
        """Do what `opened` does, without an event loop."""
        end = time.monotonic() + BOUND
        while not (select.select([self._fd], [], [], 0.01)[0] and os.read(self._fd, 1)):
            if time.monotonic() > end:
                raise TimeoutError(f"nobody opened {self.path.name}")
            time.sleep(0.001)

    def wait_gone(self, bound: float = BOUND) -> None:
        """Do what `gone` does, without an event loop."""
        end = time.monotonic() + bound
        while not self.is_gone():
            if not select.select([self._fd], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"{self.path.name} is still held after {bound} s")

    async def _read(self) -> bytes:
        while True:
            try:
                return os.read(self._fd, 1)
            except BlockingIOError:
                await anyio.wait_readable(self._fd)

    def close(self) -> None:
        os.close(self._fd)
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


def seen_once(marker: str) -> list[kernel.Seen]:
    """Every process, this one excepted, whose command line holds `marker`. A zombie has no command line and is not one."""
    wanted = [pid for pid in kernel.pids() if pid != os.getpid()]
    found = [seen for pid in wanted if (seen := kernel.look(pid)) and marker in seen.command]
    return [seen for seen in found if not kernel.is_dying(seen)]


async def survivors(marker: str, *, rounds: int = 5, apart: float = 0.02) -> list[str]:
    """Command lines that hold `marker`, from several looks: a single scan can miss a target that moves by fork and exit.

    Args:
        marker: what only the command under test has in its arguments, see `unique_duration`.
        rounds: how often to look.
        apart: seconds between two looks. This is a test of time: "nothing of it runs, and nothing comes back".
    """
    found = dict[int, str]()
    for _ in range(rounds):
        found |= {seen.pid: seen.command for seen in seen_once(marker)}
        await anyio.sleep(apart)
    return [f"{pid}: {command}" for pid, command in sorted(found.items())]


def survivors_now(marker: str, *, rounds: int = 5, apart: float = 0.02) -> list[str]:
    """Do what `survivors` does, without an event loop."""
    found = dict[int, str]()
    for _ in range(rounds):
        found |= {seen.pid: seen.command for seen in seen_once(marker)}
        time.sleep(apart)
    return [f"{pid}: {command}" for pid, command in sorted(found.items())]
