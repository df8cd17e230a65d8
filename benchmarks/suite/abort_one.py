"""abort -> every descendant gone, one process."""

from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.rows import Bound
from benchmarks.suite.comparing import compare
from benchmarks.victims.shapes import ONE


async def run(order: Order) -> Report:
    """Against every other way."""
    return await compare("abort_one", ONE, order, bound=Bound(p50=1.5, ratio=3.0, left=0))


ABORT_ONE = Benchmark("abort_one", "abort -> every descendant gone, one process", 200, run)
