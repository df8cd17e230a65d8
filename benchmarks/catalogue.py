"""The list of benchmarks, in the order of the design's table. No state."""

from benchmarks.benchmark import Benchmark
from benchmarks.soak.benchmark import SOAK
from benchmarks.suite.abort_async import ABORT_ASYNC
from benchmarks.suite.abort_calls import ABORT_CALLS
from benchmarks.suite.abort_many import ABORT_MANY
from benchmarks.suite.abort_one import ABORT_ONE
from benchmarks.suite.abort_stubborn import ABORT_STUBBORN
from benchmarks.suite.abort_tree import ABORT_TREE
from benchmarks.suite.dispatch import DISPATCH
from benchmarks.suite.journal import JOURNAL
from benchmarks.suite.memory import MEMORY
from benchmarks.suite.output import OUTPUT
from benchmarks.suite.policy import POLICY
from benchmarks.suite.shapes import SHAPES
from benchmarks.suite.start import START
from benchmarks.suite.waiting import WAITING

BENCHMARKS: dict[str, Benchmark] = {
    one.name: one
    for one in (
        ABORT_ASYNC,
        ABORT_ONE,
        ABORT_TREE,
        ABORT_STUBBORN,
        ABORT_MANY,
        ABORT_CALLS,
        DISPATCH,
        START,
        OUTPUT,
        MEMORY,
        WAITING,
        JOURNAL,
        POLICY,
        SHAPES,
        SOAK,
    )
}
