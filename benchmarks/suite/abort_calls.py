"""1,000 in-process calls aborted together."""

import time

import anyio

from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.measure import Contender, Trial, interleave
from benchmarks.rows import Bound, row
from benchmarks.suite.abort_async import sleeper
from toolrunner import AbortController, Runner, ToolCall

COUNT = 1000


async def bare_scope() -> Trial:
    """So many tasks under one scope."""
    async with anyio.create_task_group() as tasks:
        for _ in range(COUNT):
            tasks.start_soon(anyio.sleep_forever)
        await anyio.wait_all_tasks_blocked()
        began = time.perf_counter()
        tasks.cancel_scope.cancel()
    return Trial((time.perf_counter() - began) * 1000)


async def as_batch(runner: Runner) -> Trial:
    """One batch with room for all of them."""
    controller = AbortController()
    batch = runner.start_batch([ToolCall("sleeper", {}) for _ in range(COUNT)], signal=controller.signal)
    await anyio.wait_all_tasks_blocked()
    began = time.perf_counter()
    controller.abort()
    results = await batch.results()
    took = time.perf_counter() - began
    assert all(result.started for result in results)
    return Trial(took * 1000)


async def as_singles(runner: Runner) -> Trial:
    """So many `run`s under one signal."""
    controller = AbortController()
    async with anyio.create_task_group() as tasks:
        for _ in range(COUNT):
            tasks.start_soon(lambda: runner.run("sleeper", signal=controller.signal))
        await anyio.wait_all_tasks_blocked()
        began = time.perf_counter()
        controller.abort()
    return Trial((time.perf_counter() - began) * 1000)


async def run(order: Order) -> Report:
    """As one batch and as single calls, until every result is there."""
    async with Runner([sleeper], max_parallel=COUNT) as runner:
        contenders = [
            Contender("toolrunner, one batch", lambda: as_batch(runner)),
            Contender("toolrunner, single calls", lambda: as_singles(runner)),
            Contender("bare anyio cancel scope", bare_scope),
        ]
        batch, singles, scope = await interleave(contenders, order.runs, order.tick)
    bound = Bound(p50=50.0)
    rows = [row("abort_calls", batch, scope, bound=bound), row("abort_calls", singles, scope, bound=bound)]
    return Report(rows, {"abort_calls: 1,000 in-process calls": [batch, singles, scope]})


ABORT_CALLS = Benchmark("abort_calls", "1,000 in-process calls aborted together", 10, run)
