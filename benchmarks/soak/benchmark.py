"""`soak`: phases of random load with hardships between them; then what grew, and who lied."""

import random
import secrets
import tempfile
import time
from functools import partial
from pathlib import Path

import anyio

from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.measure import Series, Trial
from benchmarks.ours import launch
from benchmarks.rows import Bound, Row, row
from benchmarks.soak.bodies import BODIES
from benchmarks.soak.growth import Look
from benchmarks.soak.hardships import few_descriptors, few_processes, fork_host, processes_can_be_limited, reap
from benchmarks.soak.ledger import Ledger
from benchmarks.soak.load import Load
from benchmarks.usage import descendants
from benchmarks.victims.scene import Scene
from benchmarks.victims.shapes import ONE
from toolrunner import MemoryJournal, Runner
from toolrunner.facts import Containment
from toolrunner.process import Supervisor

SECONDS = 30.0
PHASES = 10
WORKERS = 6
WARM_UP = 2
"""Phases after which the first look is taken: pools and the journal's bounded memory are filled by then."""

KEPT_RECORDS = 2_000
"""Of the journal: its memory is bounded by the host's choice, so the soak chooses a bound that it reaches."""

GRACE = 0.1
MEMORY_KIB = 16 * 1024.0
"""What memory may differ between two quiet moments: results that are kept on the shelf, and the allocator's mood."""

THREADS = 32
"""Worker threads of a runner at most, `max_threads` unless it is told otherwise. Idle ones are kept for the next body."""

POOL = 8
"""Idle keepers at most, each with one child waiting at its gate, and one warden."""

END_BOUND = 3.0
"""Seconds after the last runner was closed until none of its processes is there."""


async def run(order: Order) -> Report:
    """The whole soak. Every call's truth is checked when its result comes, and once more at the end of its phase."""
    seconds = order.seconds if order.seconds is not None else SECONDS
    seed = secrets.randbelow(10**9)
    dice = random.Random(seed)  # noqa: S311 - dice, not keys
    looks = [Look.take()]
    with tempfile.TemporaryDirectory(prefix="tr-bench-") as folder:
        ledger = Ledger(Path(folder))
        async with _runner(Containment.KEEPER) as keeper, _runner(Containment.BEST_EFFORT) as loose:
            load = Load(keeper, loose, ledger, dice)
            for phase in range(PHASES):
                await _phase(load, seconds / PHASES)
                await _hardships(load, keeper, dice)
                ledger.look_again()
                order.tick()
                if phase >= WARM_UP:
                    looks.append(Look.take())
    await _all_gone(ledger)
    counts = ", ".join(f"{count} {what}" for what, count in sorted(ledger.counts.items()))
    return Report(_rows(ledger, [*looks, Look.take()], f"seed {seed}, {seconds:g} s: {counts}"))


def _runner(containment: Containment) -> Runner:
    return Runner(
        [launch, *BODIES],
        supervisor=partial(Supervisor, containment=containment),
        journal=MemoryJournal(KEPT_RECORDS),
        kill_after=GRACE,
    )


async def _phase(load: Load, seconds: float) -> None:
    """Workers at once, with a forked copy of the host among them."""
    until = time.monotonic() + seconds
    async with anyio.create_task_group() as tasks:
        for _ in range(WORKERS):
            tasks.start_soon(load.work, until)
        await anyio.sleep(seconds / 2)
        copy = fork_host()
    reap(copy)


async def _hardships(load: Load, runner: Runner, dice: random.Random) -> None:
    with Scene(ONE) as scene, few_descriptors(dice.randint(0, 12)):
        await load.process(scene, runner)
    if processes_can_be_limited():
        with Scene(ONE) as scene, few_processes():
            await load.process(scene, runner)


async def _all_gone(ledger: Ledger) -> None:
    """Closed runners leave no process, not even a zombie."""
    end = time.monotonic() + END_BOUND
    while (left := descendants()) and time.monotonic() < end:
        await anyio.sleep(0.01)
    if left:
        ledger.lies.append(f"left after the runners were closed: {left}")


def _rows(ledger: Ledger, looks: list[Look], note: str) -> list[Row]:
    stops = ledger.stops
    stops.trials = stops.trials or [Trial(0.0)]
    stops.trials[0] = Trial(stops.trials[0].value, ledger.left)
    stops.trials += [Trial(stops.p50, lied=True) for _ in ledger.lies]
    said = "".join(f"; LIE: {lie}" for lie in ledger.lies[:5])
    rows = [row("soak", stops, bound=Bound(left=0), note=f"abort -> result. {note}{said}")]
    before, *quiet, closed = looks
    first, last = quiet[0], quiet[-1]
    grown = (
        ("soak_memory", last.memory - first.memory, MEMORY_KIB, "KiB more"),
        ("soak_fds", float(last.fds - first.fds), 0.0, "more"),
        ("soak_threads", float(max(look.threads for look in quiet) - before.threads), float(THREADS), "at most"),
        ("soak_processes", float(max(look.processes for look in quiet)), 2.0 * POOL + 1, "at most"),
        ("soak_zombies", float(max(look.zombies for look in quiet)), 0.0, "at most"),
        ("soak_fds_closed", float(closed.fds - before.fds), 0.0, "more"),
        ("soak_threads_closed", float(closed.threads - before.threads), 0.0, "more"),
        ("soak_processes_closed", float(closed.processes + closed.zombies), 0.0, "left"),
    )
    rows += [
        row(name, Series("toolrunner", [Trial(value)]), bound=Bound(p50=limit), unit=unit) for name, value, limit, unit in grown
    ]
    return rows


SOAK = Benchmark("soak", "random hostile load: nothing grows, nobody lies (--minutes or --seconds)", 1, run, in_all=False)
