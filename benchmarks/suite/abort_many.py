"""200 processes aborted together."""

from benchmarks.baselines.killpg import Killpg
from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.rows import Bound
from benchmarks.suite.comparing import compare
from benchmarks.victims.shapes import many

COUNT = 200


async def run(order: Order) -> Report:
    """Each a call of its own, all under one signal."""
    return await compare("abort_many", many(COUNT), order, bound=Bound(p50=500.0, left=0), against=[Killpg()])


ABORT_MANY = Benchmark("abort_many", "200 processes aborted together", 10, run)
