"""Output: throughput against subprocess.run, and the host's memory while much passes."""

import subprocess
import time

from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.measure import Contender, Series, Trial, interleave
from benchmarks.rows import Bound, row
from benchmarks.usage import KIB, peak_kib, reset_peak, rss_kib
from toolrunner import Command, Runner, command_tool

MIB = KIB * KIB
SIZE = 64 * MIB
"""Bytes of a throughput trial: so many that the start of the process does not count, so few that all can be kept."""

MUCH = 1000 * MIB
"""Bytes that must pass without being kept."""

MEMORY_BOUND_KIB = 32.0 * KIB
"""Growth of the host while it passes."""


def _argv(size: int) -> list[str]:
    return ["head", "-c", str(size), "/dev/zero"]


@command_tool(parallel_safe=True)
def whole(size: int) -> Command:
    """Print so many bytes, all of them kept."""
    return Command(_argv(size), output_limit=size)


@command_tool(parallel_safe=True)
def bounded(size: int) -> Command:
    """Print so many bytes, kept up to the default limit."""
    return Command(_argv(size))


def _rate(began: float, size: int) -> Trial:
    return Trial(size / MIB / (time.perf_counter() - began))


async def by_run() -> Trial:
    """subprocess.run, which keeps it all."""
    began = time.perf_counter()
    done = subprocess.run(_argv(SIZE), capture_output=True, check=True)
    assert len(done.stdout) == SIZE
    return _rate(began, SIZE)


async def ours(runner: Runner, tool: str) -> Trial:
    """One call."""
    began = time.perf_counter()
    result = await runner.run(tool, {"size": SIZE})
    assert result.process is not None, result.summary()
    assert result.process.stdout_bytes == SIZE
    return _rate(began, SIZE)


async def growth(runner: Runner) -> Trial:
    """KiB by which our peak exceeds what we had before, while MUCH passes."""
    reset_peak()
    before = rss_kib()
    result = await runner.run("bounded", {"size": MUCH})
    assert result.process is not None, result.summary()
    assert result.process.stdout_bytes == MUCH
    return Trial(max(0.0, peak_kib() - before))


async def run(order: Order) -> Report:
    """Throughput with the default limit and with everything kept, then memory."""
    async with Runner([whole, bounded]) as runner:
        contenders = [
            Contender("toolrunner", lambda: ours(runner, "bounded")),
            Contender("toolrunner, all kept", lambda: ours(runner, "whole")),
            Contender("subprocess.run(capture_output)", by_run),
        ]
        limited, kept, other = await interleave(contenders, order.runs, order.tick)
        memory = Series("toolrunner", [await growth(runner) for _ in range(min(3, order.runs))])
    return Report(
        [
            row("output", limited, other, bound=Bound(ratio_at_least=0.8), unit="MiB/s"),
            row("output", kept, other, unit="MiB/s", note="no bound: everything kept and decoded"),
            row("output_memory", memory, bound=Bound(p50=MEMORY_BOUND_KIB), unit="KiB", note=f"while {MUCH // MIB:,} MiB pass"),
        ]
    )


OUTPUT = Benchmark("output", "throughput of output, and memory while 1 GB passes", 10, run)
