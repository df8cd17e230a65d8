"""A stop compared: toolrunner and every other way, interleaved over one shape. No state."""

from collections.abc import Sequence
from functools import partial

from benchmarks.benchmark import Order, Report
from benchmarks.contenders import absent, stoppers
from benchmarks.measure import Contender, interleave
from benchmarks.ours import Toolrunner
from benchmarks.rows import Bound, row
from benchmarks.stopping import Stopper, stop_once
from benchmarks.victims.shapes import Shape


async def compare(
    name: str, shape: Shape, order: Order, *, bound: Bound, against: Sequence[Stopper] | None = None, grace: float = 0.0
) -> Report:
    """One row per baseline. What a bound says of a ratio is said of the first one, asyncio; the others are for comparison."""
    async with Toolrunner(grace=grace or 2.0).running() as ours:
        ways: list[Stopper] = [ours, *(stoppers() if against is None else against)]
        contenders = [Contender(way.name, partial(stop_once, way, shape, allowance=grace)) for way in ways]
        own, *others = await interleave(contenders, order.runs, order.tick)
    absolute = Bound(p50=bound.p50, left=bound.left)
    note = absent() if against is None else ""
    rows = [row(name, own, other, bound=absolute if place else bound, note=note) for place, other in enumerate(others)]
    return Report(rows, {f"{name}: {shape.about}": [own, *others]})
