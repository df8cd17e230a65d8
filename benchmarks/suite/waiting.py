"""CPU that the host burns while a stopped call takes its time to end."""

import threading
import time

import anyio

from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.measure import Series, Trial
from benchmarks.rows import Bound, Row, row
from toolrunner import AbortController, Command, Runner, command_tool, tool

SECONDS = 10.0
"""How long a call takes to end, unless the order says otherwise."""

MOST_RUNS = 3
"""Whatever `--runs` says to everybody: each takes its ten seconds, and they do not differ."""

ALLOWED = 0.5
"""Percent of one core: a report now and then, and the clock's own grain."""


@tool(parallel_safe=True)
async def cleaning(seconds: float) -> str:
    """Clean up behind a shield for a while after the cancel."""
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(seconds)
    return "never"


@tool(parallel_safe=True)
async def swallowing(seconds: float) -> str:
    """Swallow the cancel and go on for a while."""
    end = time.monotonic() + seconds
    while (rest := end - time.monotonic()) > 0:
        try:
            await anyio.sleep(rest)
        except anyio.get_cancelled_exc_class():
            continue
    return "went on"


@tool(parallel_safe=True)
def blocking(seconds: float) -> str:
    """Sleep in a thread that nobody can stop."""
    threading.Event().wait(seconds)
    return "went on"


@command_tool(parallel_safe=True)
def stubborn(seconds: float) -> Command:
    """Ignore TERM until the grace period is over."""
    return Command(["/bin/sh", "-c", "trap '' TERM; echo there; sleep 600; sleep 600"], kill_after=seconds)


async def burnt(runner: Runner, name: str, seconds: float) -> Trial:
    """Percent of a core that this process used between the abort and the end."""
    controller = AbortController()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: runner.run(name, {"seconds": seconds}, signal=controller.signal))
        await anyio.sleep(min(0.2, seconds))  # until it is in the middle of it; what is measured does not depend on how far
        began, cpu = time.perf_counter(), time.process_time()
        controller.abort()
    return Trial((time.process_time() - cpu) / (time.perf_counter() - began) * 100)


async def run(order: Order) -> Report:
    """Each kind of body."""
    seconds = order.seconds if order.seconds is not None else SECONDS
    rows: list[Row] = []
    async with Runner([cleaning, swallowing, blocking, stubborn]) as runner:
        for name in ("cleaning", "swallowing", "blocking", "stubborn"):
            series = Series("toolrunner", [await burnt(runner, name, seconds) for _ in range(min(order.runs, MOST_RUNS))])
            order.tick()
            note = f"{seconds:g} s from the abort to the end"
            rows.append(row(f"waiting_{name}", series, bound=Bound(p50=ALLOWED), unit="% of a core", note=note))
    return Report(rows)


WAITING = Benchmark("waiting", "CPU while a stopped call takes 10 s to end", 1, run)
