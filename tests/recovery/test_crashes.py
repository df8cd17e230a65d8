"""The host is killed at every write of its journal in turn, and at random over many openings: what is told afterwards is true."""

import random
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from recovery.crash_host import CALLS, JOURNAL, Truth, tools
from recovery.crashes import MODES, CrashHost, check, crash_host, read, starts_per_name
from recovery.matrix import matrix

from toolrunner import Runner, SqliteJournal
from toolrunner.facts import EffectState
from toolrunner.results import Code

pytestmark = pytest.mark.processes

BOUND = 30.0
"""Seconds to open and run once more; the disk may be busy."""

MOST = 80
"""More appends than one run makes; which one is the last is found out by running."""


@pytest.fixture(scope="module")
def host() -> Iterator[CrashHost]:
    with crash_host() as running:
        yield running


async def run_again(folder: Path) -> None:
    """The same calls once more, after a recovery, by an owner that nobody kills."""
    with anyio.fail_after(BOUND):
        async with Runner(tools(Truth(folder)), journal=SqliteJournal.open(folder / JOURNAL)) as runner:
            before = {result.call_id: result for result in check(folder).values() if result.call_id is not None}
            results = await runner.run_batch(CALLS)
    for result in results:
        earlier = before.get(result.call_id or "")
        if earlier is None or not earlier.started:
            assert not result.replayed
        elif earlier.effects.state in (EffectState.UNKNOWN, EffectState.PARTIAL):
            assert result.code is Code.IN_DOUBT
            assert result.about_run_id == earlier.run_id
        else:
            assert result.replayed
            assert result.about_run_id == earlier.run_id
    check(folder)
    assert set(starts_per_name(folder).values()) == {1}


@pytest.mark.anyio
async def test_killed_at_every_write_in_turn(host: CrashHost, tmp_path: Path, anyio_backend_name: str) -> None:
    """The moment around the write changes from write to write, and is another one on the other loop."""
    shift = 0 if anyio_backend_name == "asyncio" else 1
    at, folder = 0, tmp_path
    for at in range(1, MOST):
        folder = tmp_path / str(at)
        folder.mkdir()
        killed = host.crash(folder, anyio_backend_name, at, MODES[(at + shift) % len(MODES)])
        await run_again(folder)
        if not killed:
            break
    assert 20 < at < MOST - 1
    assert all(story.settled is not None for story in read(folder).stories.by_run.values())


def test_killed_at_any_moment_under_load(tmp_path: Path) -> None:
    """The 500 runs are made by `python tests/recovery/matrix.py`; these show that it works."""
    figures = matrix(25, tmp_path, load=1)
    assert figures.runs == 25
    assert figures.killed > 0


@pytest.mark.anyio
async def test_killed_again_and_again_also_in_its_recovery(host: CrashHost, tmp_path: Path, anyio_backend_name: str) -> None:
    for seed in range(12):
        dice = random.Random(seed)  # noqa: S311 - repeatable, and no secret
        folder = tmp_path / str(seed)
        folder.mkdir()
        for _ in range(dice.randint(2, 5)):
            host.crash(folder, anyio_backend_name, dice.randint(1, 25), dice.choice(MODES))
            assert set(starts_per_name(folder).values()) <= {1}
        with anyio.fail_after(BOUND):
            async with Runner(journal=SqliteJournal.open(folder / JOURNAL)):
                pass
        results = check(folder)
        async with Runner(journal=SqliteJournal.open(folder / JOURNAL)) as runner:
            assert runner.recovery is not None
            assert runner.recovery.plan.records == ()
        assert check(folder) == results
