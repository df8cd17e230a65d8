"""abort -> ended, cooperative async tool, against a bare anyio cancel scope.

Two ends are measured: when the body is over and recorded so (`call/ended`), which the bound is about, and the result.
"""

import time
from collections.abc import Callable

import anyio

from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.measure import Contender, Trial, interleave
from benchmarks.rows import Bound, row
from toolrunner import AbortController, Runner, tool


@tool(parallel_safe=True)
async def sleeper() -> str:
    """Sleep until cancelled."""
    await anyio.sleep_forever()
    return "never"


async def bare_scope() -> Trial:
    """One task in one cancel scope: what nobody can be faster than."""
    ended: list[float] = []
    scope = anyio.CancelScope()

    async def body() -> None:
        with scope:
            await anyio.sleep_forever()
        ended.append(time.perf_counter())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(body)
        await anyio.wait_all_tasks_blocked()
        began = time.perf_counter()
        scope.cancel()
    return Trial((ended[0] - began) * 1000)


class Ours:
    """One runner; hears when the body's end is recorded."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._ended_at = 0.0
        runner.on_record(self._hear)

    def _hear(self, record: object) -> None:
        if getattr(record, "type", "") == "call/ended":
            self._ended_at = time.perf_counter()

    async def until_ended(self) -> Trial:
        return await self._trial(lambda _: self._ended_at)

    async def until_result(self) -> Trial:
        return await self._trial(lambda returned: returned)

    async def _trial(self, over: Callable[[float], float]) -> Trial:
        controller = AbortController()
        returned: list[float] = []

        async def call() -> None:
            await self._runner.run("sleeper", signal=controller.signal)
            returned.append(time.perf_counter())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            began = time.perf_counter()
            controller.abort()
        return Trial((over(returned[0]) - began) * 1000)


async def run(order: Order) -> Report:
    """Both ends against the scope."""
    async with Runner([sleeper]) as runner:
        ours = Ours(runner)
        contenders = [
            Contender("toolrunner", ours.until_ended),
            Contender("toolrunner, until the result", ours.until_result),
            Contender("bare anyio cancel scope", bare_scope),
        ]
        ended, result, scope = await interleave(contenders, order.runs, order.tick)
    rows = [
        row("abort_async", ended, scope, bound=Bound(ratio=2.0)),
        row("abort_async", result, scope, note="no bound: hooks and checks after the body lie between"),
    ]
    return Report(rows, {"abort_async: cooperative async tool": [ended, result, scope]})


ABORT_ASYNC = Benchmark("abort_async", "abort -> ended, cooperative async tool", 500, run)
