"""Start of a process: from the call to the command's first act, and from the call to the result of `true`."""

import asyncio
import os
import tempfile
import time
from asyncio.subprocess import PIPE
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio

from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.measure import Contender, Trial, interleave
from benchmarks.ours import Toolrunner
from benchmarks.rows import Bound, row
from benchmarks.victims.shapes import Argv

FIRST_ACT_BOUND = 10.0
"""Seconds for a command to do its first act."""

FirstAct = Callable[[Argv], Coroutine[Any, Any, None]]


async def by_asyncio(argv: Argv) -> None:
    """create_subprocess_exec with pipes, and communicate."""
    process = await asyncio.create_subprocess_exec(*argv, stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=PIPE)
    await process.communicate()


def by_toolrunner(ours: Toolrunner) -> FirstAct:
    """One call."""

    async def act(argv: Argv) -> None:
        result = await ours.runner.run("launch", {"argv": list(argv)})
        assert result.process is not None, result.summary()

    return act


async def first_act(act: FirstAct, fifo: Path) -> Trial:
    """Milliseconds until the command has opened a FIFO for writing: /bin/sh's first act here, with either contender."""
    fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        async with anyio.create_task_group() as tasks:
            began = time.perf_counter()
            tasks.start_soon(act, ("/bin/sh", "-c", 'echo > "$1"', "sh", str(fifo)))
            with anyio.fail_after(FIRST_ACT_BOUND):
                await anyio.wait_readable(fd)
            took = time.perf_counter() - began
    finally:
        os.close(fd)
    return Trial(took * 1000)


async def round_trip(act: FirstAct) -> Trial:
    """Milliseconds from the call to the result of `true`."""
    began = time.perf_counter()
    await act(("/bin/true",))
    return Trial((time.perf_counter() - began) * 1000)


async def run(order: Order) -> Report:
    """The first act, then the round trip."""
    with tempfile.TemporaryDirectory(prefix="tr-bench-") as folder:
        fifo = Path(folder, "act")
        os.mkfifo(fifo)
        async with Toolrunner().running() as ours:
            ways: list[tuple[str, FirstAct]] = [
                ("toolrunner", by_toolrunner(ours)),
                ("asyncio create_subprocess_exec", by_asyncio),
            ]
            own, other = await interleave([_first(name, act, fifo) for name, act in ways], order.runs, order.tick)
            trip, trip_other = await interleave([_trip(name, act) for name, act in ways], order.runs, order.tick)
    rows = [
        row("start", own, other, bound=Bound(over=1.5)),
        row("start_round_trip", trip, trip_other, note="no bound: `true` from the call to the result"),
    ]
    return Report(rows, {"start: to the command's first act": [own, other], "start: `true` to its result": [trip, trip_other]})


def _first(name: str, act: FirstAct, fifo: Path) -> Contender:
    return Contender(name, lambda: first_act(act, fifo))


def _trip(name: str, act: FirstAct) -> Contender:
    return Contender(name, lambda: round_trip(act))


START = Benchmark("start", "start of a process, and `true` from the call to the result", 100, run)
