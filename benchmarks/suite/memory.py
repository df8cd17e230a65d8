"""Memory of a running process call and of a queued call."""

import gc
from collections.abc import Sequence

import anyio

from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.measure import Series, Trial
from benchmarks.ours import Toolrunner
from benchmarks.rows import Bound, Row, row
from benchmarks.usage import descendants, private_kib, rss_kib
from benchmarks.victims.scene import Scene
from benchmarks.victims.shapes import many
from toolrunner import AbortController, Runner, ToolCall, tool

PROCESSES = 40
QUEUED = 2000


class NotReadable(Exception):
    """A keeper's memory may not be looked at by this user."""


def _supervision_kib(tools: Sequence[str]) -> float:
    """Private memory of the warden, the keepers and what waits at their gates; of everything that is not the tools' own."""
    total = 0.0
    for process in descendants():
        if process.name() in tools:
            continue
        private = private_kib(process.pid)
        if private is None:
            raise NotReadable
        total += private
    return total


async def process_call(ours: Toolrunner) -> Trial:
    """KiB per running process call: what supervision and host grow by while many run."""
    with Scene(many(1)) as first, Scene(many(PROCESSES)) as scene:
        async with ours.start(first.commands):  # the warden and its pool are there before and after
            await first.born()
            gc.collect()
            before = rss_kib() + _supervision_kib(["sleep"])
            async with ours.start(scene.commands) as calls:
                await scene.born()
                gc.collect()
                grown = rss_kib() + _supervision_kib(["sleep"]) - before
                await calls.stop()
            scene.close()
    return Trial(grown / PROCESSES)


@tool(parallel_safe=True)
async def waiter() -> None:
    """Wait until cancelled."""
    await anyio.sleep_forever()


async def queued_call(runner: Runner) -> Trial:
    """KiB per queued call: what the host grows by while one call runs and many wait."""
    gc.collect()
    before = rss_kib()
    controller = AbortController()
    batch = runner.start_batch([ToolCall("waiter", {}) for _ in range(QUEUED)], signal=controller.signal)
    await anyio.wait_all_tasks_blocked()
    gc.collect()
    grown = rss_kib() - before
    controller.abort()
    await batch.results()
    return Trial(grown / QUEUED)


async def _process_rows(order: Order) -> list[Row]:
    bound = Bound(p50=1024.0)
    async with Toolrunner().running() as ours:
        try:
            await process_call(ours)
            series = Series("toolrunner", [await process_call(ours) for _ in range(order.runs)])
        except NotReadable:
            return []
    return [row("memory_process", series, bound=bound, unit="KiB", note=f"per call, {PROCESSES} running, keepers and host")]


async def run(order: Order) -> Report:
    """Both. The first process call grows pools as well and is thrown away; a queue is measured in a fresh runner."""
    rows = await _process_rows(order)
    trials = []
    for _ in range(order.runs):
        async with Runner([waiter], max_parallel=1) as runner:
            trials.append(await queued_call(runner))
        order.tick()
    # The largest growth, not the median: later trials find memory that an earlier one gave back to the allocator.
    largest = Series("toolrunner", [max(trials, key=lambda trial: trial.value)])
    rows.append(
        row("memory_queued", largest, bound=Bound(p50=20.0), unit="KiB", note=f"per call, {QUEUED:,} queued; the largest")
    )
    return Report(rows)


MEMORY = Benchmark("memory", "memory of a running process call and of a queued call", 5, run)
