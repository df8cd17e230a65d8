"""The 14 shapes: survivors of each way to stop them, and how long it takes. Also checks that no result claims too much."""

from contextlib import AsyncExitStack
from functools import partial

from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.contenders import absent, stoppers
from benchmarks.measure import Contender, interleave
from benchmarks.ours import Toolrunner
from benchmarks.rows import Bound, row
from benchmarks.stopping import Stopper, stop_once
from benchmarks.victims.shapes import FOURTEEN
from toolrunner.facts import Containment

GRACE = 0.1
"""Seconds between TERM and KILL. Short: three shapes let it run out, and it is a part of their times."""


async def run(order: Order) -> Report:
    """One row per shape and baseline for keepers, which must leave nobody, and for best_effort, which must not claim to."""
    report = Report()
    async with AsyncExitStack() as stack:
        ours: list[Stopper] = [
            await stack.enter_async_context(Toolrunner(containment, grace=GRACE).running())
            for containment in (Containment.KEEPER, Containment.BEST_EFFORT)
        ]
        for shape in FOURTEEN:
            ways = [*ours, *stoppers()]
            contenders = [Contender(way.name, partial(stop_once, way, shape)) for way in ways]
            keeper, loose, *others = await interleave(contenders, order.runs, order.tick)
            name = f"shape_{shape.name}"
            bounds = ((keeper, Bound(left=0)), (loose, Bound()))
            report.rows += [
                row(name, own, other, bound=bound, note=f"{shape.about}. {absent()}".rstrip(". "))
                for own, bound in bounds
                for other in others
            ]
            report.panels[f"{name}: {shape.about}"] = [keeper, loose, *others]
    return report


SHAPES = Benchmark("shapes", "14 shapes of process trees: survivors and times", 20, run)
