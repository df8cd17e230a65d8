"""A process that ignores TERM: what is needed beyond the grace period."""

from benchmarks.baselines.killpg import Killpg
from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.rows import Bound
from benchmarks.suite.comparing import compare
from benchmarks.victims.shapes import STUBBORN

GRACE = 0.1
"""Seconds. What is measured is what comes on top of it, and that does not depend on its length."""


async def run(order: Order) -> Report:
    """The grace period is taken off the times, ours and the baseline's."""
    return await compare("abort_stubborn", STUBBORN, order, bound=Bound(p50=20.0, left=0), against=[Killpg(GRACE)], grace=GRACE)


ABORT_STUBBORN = Benchmark("abort_stubborn", "a process that ignores TERM: time beyond the grace period", 50, run)
