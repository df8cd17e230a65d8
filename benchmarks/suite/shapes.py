"""The 14 shapes: survivors of each way to stop them, and how long it takes. Also checks that no result claims too much.

Ours are keepers, a cgroup besides the keeper where one can be had, and best_effort.
"""

from contextlib import AsyncExitStack
from functools import partial

from benchmarks.benchmark import Benchmark, Field, Order, Report
from benchmarks.contenders import absent, stoppers
from benchmarks.measure import Contender, Series, interleave
from benchmarks.ours import Toolrunner
from benchmarks.rows import Bound, row
from benchmarks.stopping import Stopper, stop_once
from benchmarks.victims.shapes import FOURTEEN
from toolrunner.facts import Containment
from toolrunner.process import Supervisor

GRACE = 0.1
"""Seconds between TERM and KILL. Short: three shapes let it run out, and it is a part of their times."""


async def containments() -> tuple[list[Containment], str]:
    """What this host can do, and why not the rest."""
    supervisor = Supervisor(containment=Containment.CGROUP)
    abilities = await supervisor.abilities()
    await supervisor.aclose()
    if abilities.containment is Containment.CGROUP:
        return [Containment.KEEPER, Containment.CGROUP, Containment.BEST_EFFORT], ""
    return [Containment.KEEPER, Containment.BEST_EFFORT], f"no cgroup here: {'; '.join(abilities.reasons)}"


async def run(order: Order) -> Report:
    """One row per shape, containment and baseline. Keepers and cgroups must leave nobody, best_effort must not claim to."""
    report = Report()
    others = stoppers() if order.field is Field.EVERYBODY else []
    kinds, why = await containments()
    async with AsyncExitStack() as stack:
        ours = [await stack.enter_async_context(Toolrunner(kind, grace=GRACE).running()) for kind in kinds]
        for shape in FOURTEEN:
            ways: list[Stopper] = [*ours, *others]
            contenders = [Contender(way.name, partial(stop_once, way, shape)) for way in ways]
            series = await interleave(contenders, order.runs, order.tick)
            name = f"shape_{shape.name}"
            note = ". ".join(filter(None, (shape.about, why, absent() if others else "")))
            against: list[Series | None] = [*series[len(kinds) :]] or [None]
            for kind, own in zip(kinds, series, strict=False):
                bound = Bound() if kind is Containment.BEST_EFFORT else Bound(left=0)
                report.rows += [row(name, own, other, bound=bound, note=note) for other in against]
            report.panels[f"{name}: {shape.about}"] = series
    return report


SHAPES = Benchmark("shapes", "14 shapes of process trees: survivors and times", 20, run)
