"""asyncio's subprocess in a process group of its own: killpg, then wait. What most agent code does."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from benchmarks.stopping import Running
from benchmarks.victims.shapes import Argv


class Killpg:
    """SIGKILL at once; with `grace` seconds, SIGTERM first.

    Without pipes, in favour of the baseline: with them `wait` of this Python waits for everybody who holds their other end.
    """

    def __init__(self, grace: float = 0.0) -> None:
        self.name = "asyncio, killpg + wait" if not grace else "asyncio, killpg TERM, KILL + wait"
        self._grace = grace

    @asynccontextmanager
    async def start(self, commands: Sequence[Argv]) -> AsyncIterator[Running]:
        made = [
            await asyncio.create_subprocess_exec(*argv, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True)
            for argv in commands
        ]
        try:
            yield _Group(made, self._grace)
        finally:
            for process in made:
                await process.wait()


class _Group:
    def __init__(self, made: Sequence[Process], grace: float) -> None:
        self._made = made
        self._grace = grace

    async def stop(self) -> bool:
        if self._grace:
            self._signal(signal.SIGTERM)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wait(), self._grace)
        self._signal(signal.SIGKILL)
        await self._wait()
        return False

    def _signal(self, number: int) -> None:
        for process in self._made:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)

    async def _wait(self) -> None:
        for process in self._made:
            await process.wait()
