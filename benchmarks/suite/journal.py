"""The journal on disk: what a durable event costs alone and in company, next to the disk's own flush and to other ways.

Everything lies in one folder below TMPDIR, so all pay for the same disk. One in memory measures nothing.
"""

import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio

from benchmarks.baselines.journal_files import AIOSQLITE, Aiosqlite, CommitEach, Flush, FlushFromThread, WriteText
from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.measure import Contender, Series, Trial, interleave
from benchmarks.rows import Bound, row
from toolrunner import Runner, SqliteJournal, tool
from toolrunner.records import CallDispatched, CallRecorded, CallSettled, now

CALLERS = 16
EVENTS = 20
"""Events of each caller in one trial."""

STORED = 100_000
"""Events in the journal that is opened again."""

CALLS = 50
"""Calls after which the growth of the files is looked at."""

Write = Callable[[int], Awaitable[object]]
"""Has the event of this number on the disk when it returns."""


@tool
async def noop(x: int) -> str:
    """Do nothing."""
    return str(x)


def _record(number: int) -> CallDispatched:
    return CallDispatched(run_id=f"run-{number}", name="noop", arguments={"x": number})


async def together(write: Write, callers: int) -> Trial:
    """Milliseconds per event while so many callers each wait for their own."""

    async def caller(first: int) -> None:
        for number in range(EVENTS):
            await write(first + number)

    began = time.perf_counter()
    async with anyio.create_task_group() as group:
        for index in range(callers):
            group.start_soon(caller, index * EVENTS)
    return Trial((time.perf_counter() - began) * 1000 / (callers * EVENTS))


async def once(write: Write, events: int = 1) -> Trial:
    """Milliseconds of one event, alone; or for each of so many that would share it."""
    began = time.perf_counter()
    await write(1)
    return Trial((time.perf_counter() - began) * 1000 / events)


def _written(write: WriteText, text: str, number: int) -> Awaitable[object]:
    return write(f"run-{number}", text)


@asynccontextmanager
async def _ways(folder: Path) -> AsyncIterator[list[tuple[str, Write]]]:
    journal = SqliteJournal.open(folder / "ours" / "journal.db")
    others: list[CommitEach | Aiosqlite] = [CommitEach(folder)]
    if AIOSQLITE:
        others.append(Aiosqlite(folder))
    flushes: list[FlushFromThread | Flush] = [FlushFromThread(folder), Flush(folder)]

    async def ours(number: int) -> None:
        durable = journal.append(_record(number))
        assert durable is not None
        await durable

    text = '{"run_id":"run-1","at":"2026-01-01T00:00:00Z","v":1,"name":"noop","arguments":{"x":1},"type":"call/dispatched"}'
    ways: list[tuple[str, Write]] = [("toolrunner", ours)]
    ways += [(way.name, partial(_written, way.write, text)) for way in (*others, *flushes)]
    try:
        yield ways
    finally:
        await journal.aclose()
        for one in (*others, *flushes):
            await one.aclose()


async def _events(folder: Path, order: Order, report: Report) -> None:
    note = "" if AIOSQLITE else "not here: aiosqlite"
    async with _ways(folder) as ways:
        alone = [Contender(name, lambda write=write: once(write)) for name, write in ways]  # type: ignore[misc]
        own, *others = await interleave(alone, order.runs * 5, order.tick)
        flush = others.pop()
        report.rows.append(row("journal_dispatch", own, flush, bound=Bound(ratio=1.5), note="one durable event, nobody else"))
        report.rows += [row("journal_dispatch", own, other, note=note) for other in others]
        report.panels["journal: one durable event"] = [own, flush, *others]
        company = [Contender(name, lambda write=write: together(write, CALLERS)) for name, write in ways[:-2]]  # type: ignore[misc]
        company.append(Contender(f"one fdatasync / {CALLERS}", lambda: once(ways[-1][1], CALLERS)))
        own, *others = await interleave(company, order.runs, order.tick)
        bound = Bound(p50=0.2)
        about = f"{CALLERS} callers: {1000 / own.p50:.0f} durable events/s; at least 5,000 are asked for"
        report.rows += [row("journal_events", own, other, bound=bound, unit="ms/event", note=about) for other in others]
        report.panels[f"journal: per event, {CALLERS} callers"] = [own, *others]


async def _calls(folder: Path, order: Order, report: Report) -> None:
    """Whole calls, which take three flushes when they have an effect and two when not; and what they leave on the disk."""
    journal = SqliteJournal.open(folder / "calls" / "journal.db")
    flush = Flush(folder)

    async def call(runner: Runner) -> Trial:
        began = time.perf_counter()
        result = await runner.run("noop", {"x": 1})
        assert result.value == "1"
        return Trial((time.perf_counter() - began) * 1000)

    async with Runner([noop], journal=journal) as runner:
        contenders = [
            Contender("toolrunner", lambda: call(runner)),
            Contender(flush.name, lambda: once(lambda _: flush.write("", ""))),
        ]
        own, one = await interleave(contenders, order.runs * 2, order.tick)
        for _ in range(CALLS):
            await runner.run("noop", {"x": 1})
        calls = len(own.trials) + CALLS
    await flush.aclose()
    report.rows.append(row("journal_call", own, one, note="a whole call: dispatched and ended are waited for"))
    size = Series("toolrunner", [Trial(journal.path.stat().st_size / calls)])
    report.rows.append(row("journal_growth", size, unit="bytes/call", note=f"over {calls} calls of a no-op tool"))


async def _open_again(folder: Path, order: Order, report: Report) -> None:
    path = folder / "large" / "journal.db"
    path.parent.mkdir()
    journal = SqliteJournal.open(path)
    async with Runner([noop]) as runner:
        result = await runner.run("noop", {"x": 1})
    for number in range(STORED // 4):
        fields = {"run_id": f"run-{number}", "at": now()}
        journal.append(
            CallRecorded(name="noop", arguments={"x": number}, idempotency_key=f"key-{number}", **fields),  # type: ignore[arg-type]
            _record(number),
            CallSettled(result=result, **fields),  # type: ignore[arg-type]
            _record(number),
        )
        if number % 5_000 == 0:
            await journal.flush()
    await journal.aclose()
    series = Series("toolrunner")
    for _ in range(min(order.runs, 5)):
        began = time.perf_counter()
        async with Runner([noop], journal=SqliteJournal.open(path)):
            series.trials.append(Trial((time.perf_counter() - began) * 1000))
        order.tick()
    about = f"{STORED:,} events: opened, and a runner entered"
    report.rows.append(row("journal_open", series, bound=Bound(p50=1000), note=about))


async def run(order: Order) -> Report:
    """All of it in one folder."""
    report = Report()
    folder = Path(tempfile.mkdtemp(prefix="journal-"))
    try:
        for name in ("ours", "calls"):
            (folder / name).mkdir()
        await _events(folder, order, report)
        await _calls(folder, order, report)
        await _open_again(folder, order, report)
    finally:
        shutil.rmtree(folder)
    return report


JOURNAL = Benchmark("journal", "durable events on disk, alone and in company; open with 100,000 of them", 50, run)
