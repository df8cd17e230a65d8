"""abort -> every descendant gone, a tree of 11 with sessions of their own and daemons."""

from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.rows import Bound
from benchmarks.suite.comparing import compare
from benchmarks.victims.shapes import TREE


async def run(order: Order) -> Report:
    """Against every other way; those that miss somebody are quick."""
    return await compare("abort_tree", TREE, order, bound=Bound(p50=4.0, left=0))


ABORT_TREE = Benchmark("abort_tree", "the same, tree of 11 with setsid and daemons", 100, run)
