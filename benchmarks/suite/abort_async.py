"""abort -> ended, cooperative async tool, against a bare anyio cancel scope.

Two ends are measured: when the body is over and recorded so (`call/ended`), which the bound is about, and the result. And two
moments: as soon as the body waits, when all code is in the processor's caches, and after a pause, as when a person presses stop.
Both contenders get the same: one that is measured right after it ran, next to one after a sleep, is five times as quick for that.
"""

import time
from collections.abc import Callable

import anyio
import anyio.lowlevel

from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.measure import Contender, Trial, interleave
from benchmarks.rows import Bound, row
from toolrunner import AbortController, Runner, tool

PAUSE = 0.02
"""Seconds in which nothing runs: other programs take the caches then, and the core may sleep."""


@tool(parallel_safe=True)
async def sleeper() -> str:
    """Sleep until cancelled."""
    await anyio.sleep_forever()
    return "never"


async def _wait(entered: anyio.Event, pause: float) -> None:
    """Until the body waits, and `pause` seconds more."""
    await entered.wait()
    await (anyio.sleep(pause) if pause else anyio.lowlevel.checkpoint())


async def bare_scope(pause: float = 0.0) -> Trial:
    """One task in one cancel scope: what nobody can be faster than."""
    ended: list[float] = []
    scope = anyio.CancelScope()
    entered = anyio.Event()

    async def body() -> None:
        with scope:
            entered.set()
            await anyio.sleep_forever()
        ended.append(time.perf_counter())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(body)
        await _wait(entered, pause)
        began = time.perf_counter()
        scope.cancel()
    return Trial((ended[0] - began) * 1000)


class Ours:
    """One runner with one tool; hears when the body's end is recorded."""

    def __init__(self) -> None:
        self._entered = anyio.Event()
        self._ended_at = 0.0

        @tool(parallel_safe=True)
        async def waits() -> str:
            """Say that it is entered, and sleep until cancelled."""
            self._entered.set()
            await anyio.sleep_forever()
            return "never"

        self.runner = Runner([waits])
        self.runner.on_record(self._hear)

    def _hear(self, record: object) -> None:
        if getattr(record, "type", "") == "call/ended":
            self._ended_at = time.perf_counter()

    async def until_ended(self, pause: float = 0.0) -> Trial:
        return await self._trial(lambda _: self._ended_at, pause)

    async def until_result(self) -> Trial:
        return await self._trial(lambda returned: returned, 0.0)

    async def _trial(self, over: Callable[[float], float], pause: float) -> Trial:
        controller = AbortController()
        returned: list[float] = []
        self._entered = anyio.Event()

        async def call() -> None:
            await self.runner.run("waits", signal=controller.signal)
            returned.append(time.perf_counter())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await _wait(self._entered, pause)
            began = time.perf_counter()
            controller.abort()
        return Trial((over(returned[0]) - began) * 1000)


async def run(order: Order) -> Report:
    """Both ends against the scope."""
    ours = Ours()
    async with ours.runner:
        contenders = [
            Contender("toolrunner", ours.until_ended),
            Contender("toolrunner, until the result", ours.until_result),
            Contender("bare anyio cancel scope", bare_scope),
        ]
        ended, result, scope = await interleave(contenders, order.runs, order.tick)
        later = [
            Contender("toolrunner, after a pause", lambda: ours.until_ended(PAUSE)),
            Contender("bare anyio cancel scope, after a pause", lambda: bare_scope(PAUSE)),
        ]
        paused, paused_scope = await interleave(later, order.runs)
    rows = [
        row("abort_async", ended, scope, bound=Bound(ratio=2.0)),
        row("abort_async", result, scope, note="no bound: hooks and checks after the body lie between"),
        row("abort_async", paused, paused_scope, bound=Bound(ratio=2.0), note=f"after {PAUSE * 1000:g} ms without work"),
    ]
    return Report(rows, {"abort_async: cooperative async tool": [ended, result, scope, paused, paused_scope]})


ABORT_ASYNC = Benchmark("abort_async", "abort -> ended, cooperative async tool", 500, run)
