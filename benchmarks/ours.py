"""toolrunner as a contender that starts commands: one runner for a whole benchmark, its claims checked by whoever measures."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio

from benchmarks.stopping import Running
from benchmarks.victims.shapes import Argv
from toolrunner import AbortController, Command, Runner, ToolResult, command_tool
from toolrunner.facts import Containment
from toolrunner.process import Supervisor


@command_tool(parallel_safe=True)
def launch(argv: list[str]) -> Command:
    """Start a command."""
    return Command(argv)


class NotStarted(Exception):
    """A call of ours was refused, so there is nothing to measure. The message is its summary."""


class Toolrunner:
    """Keepers, or the way that needs none. Use `running` for as long as it measures."""

    def __init__(self, containment: Containment | None = None, *, grace: float = 2.0) -> None:
        self.name = "toolrunner" if containment is None else f"toolrunner {containment}"
        self._containment = containment
        self._grace = grace
        self.runner = Runner()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Toolrunner"]:
        """Open for the block."""
        supervisor = partial(Supervisor, containment=self._containment)
        async with Runner([launch], supervisor=supervisor, kill_after=self._grace) as self.runner:
            yield self

    @asynccontextmanager
    async def start(self, commands: Sequence[Argv]) -> AsyncIterator[Running]:
        async with anyio.create_task_group() as tasks:
            calls = _Calls(self.runner, len(commands))
            for argv in commands:
                tasks.start_soon(calls.one, argv)
            yield calls
            calls.controller.abort()


class _Calls:
    def __init__(self, runner: Runner, count: int) -> None:
        self._runner = runner
        self._missing = count
        self._over = anyio.Event()
        self.controller = AbortController()
        self.results: list[ToolResult] = []

    async def one(self, argv: Argv) -> None:
        self.results.append(await self._runner.run("launch", {"argv": list(argv)}, signal=self.controller.signal))
        self._missing -= 1
        if not self._missing:
            self._over.set()

    async def stop(self) -> bool:
        self.controller.abort()
        await self._over.wait()
        if refused := [result for result in self.results if not result.started]:
            raise NotStarted(refused[0].summary())
        return all(result.still_running == () for result in self.results)
