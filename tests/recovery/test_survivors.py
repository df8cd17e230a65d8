"""Processes that outlived their host: looked up by identity, left alone by an ordinary open, ended when that is asked for."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from liveness import Lifeline, unique_duration

from toolrunner import Runner, SqliteJournal
from toolrunner.facts import ProcessIdentity
from toolrunner.journal import JournalReader
from toolrunner.process.identity import identity_of, starttime_of
from toolrunner.records import CallDispatched, CallRecorded, JobStarted
from toolrunner.recovery import Life, dry_run, recover
from toolrunner.results import Code

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

BOUND = 20.0


@contextmanager
def left_over(script: str) -> Iterator[ProcessIdentity]:
    """A process in a session of its own, as a call's would be whose host and keeper are gone."""
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as process:
        try:
            yield identity_of(process.pid, starttime_of(process.pid))
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


async def written(path: Path, process: ProcessIdentity) -> None:
    """A journal whose owner was killed while a call's process and a job ran."""
    journal = SqliteJournal.open(path)
    journal.append(
        CallRecorded(run_id="r", name="serve", arguments={}),
        CallDispatched(run_id="r", name="serve", arguments={}, process=process),
        JobStarted(run_id="j", job_id="j", name="job", process=process),
    )
    await journal.aclose()


@pytest.mark.parametrize("stubborn", [False, True], ids=["polite", "stubborn"])
async def test_an_open_lists_what_lives_and_recover_ends_it_with_its_descendants(stubborn: bool, tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    ignores = "trap '' TERM;" if stubborn else ""
    with Lifeline(tmp_path) as line, anyio.fail_after(BOUND):
        with left_over(
            f"{ignores} {line.sh}; sleep {unique_duration()} & setsid sleep {unique_duration()} & wait; wait"
        ) as process:
            await line.opened()
            await written(path, process)
            with JournalReader(path) as reader:
                before = reader.last_seq()
                assert [one.life for one in dry_run(reader).survivors] == [Life.ALIVE]
                assert reader.last_seq() == before
            async with Runner(journal=SqliteJournal.open(path)) as runner:
                assert runner.recovery is not None
                [found] = runner.recovery.survivors
                result = runner.result("r")
            assert found.life is Life.ALIVE
            assert not line.is_gone()
            assert result.code is Code.LOST
            assert result.still_running
            assert process.pid in [one.pid for one in result.still_running]
            journal = SqliteJournal.open(path)
            try:
                ended = await recover(journal, ends=True, grace=0.2)
            finally:
                await journal.aclose()
        assert [one.life for one in ended.survivors] == [Life.NOT_FOUND]
        assert ended.survivors[0].signals == (("SIGTERM", "SIGKILL") if stubborn else ("SIGTERM",))
        await line.gone()


async def test_recover_says_in_the_results_what_is_left_when_it_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    with left_over(f"sleep {unique_duration()}") as process, anyio.fail_after(BOUND):
        await written(path, process)
        journal = SqliteJournal.open(path)
        try:
            found = await recover(journal, ends=True)
        finally:
            await journal.aclose()
    [result] = found.plan.results
    assert (result.code, result.still_running) == (Code.LOST, None)


async def test_a_process_of_another_boot_is_gone_and_one_of_another_namespace_or_host_is_not_touched(tmp_path: Path) -> None:
    with left_over(f"sleep {unique_duration()}") as process:
        others = {
            "boot": (replace(process, boot_id="another"), Life.GONE, ()),
            "namespace": (replace(process, pid_namespace=1), Life.NOT_CHECKED, None),
            "number": (replace(process, starttime=process.starttime + 1), Life.NOT_FOUND, None),
        }
        for name, (identity, life, left) in others.items():
            path = tmp_path / f"{name}.db"
            await written(path, identity)
            journal = SqliteJournal.open(path)
            try:
                with anyio.fail_after(BOUND):
                    found = await recover(journal, ends=True)
            finally:
                await journal.aclose()
            assert [one.life for one in found.survivors] == [life]
            assert found.plan.results[0].still_running == left
            os.kill(process.pid, 0)


async def test_a_journal_from_another_host_has_nothing_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "j.db"
    with left_over(f"sleep {unique_duration()}") as process, anyio.fail_after(BOUND):
        await written(path, process)
        monkeypatch.setattr("toolrunner.recovery.past.this_host", lambda: "elsewhere")
        journal = SqliteJournal.open(path)
        try:
            found = await recover(journal, ends=True)
        finally:
            await journal.aclose()
        assert [one.life for one in found.survivors] == [Life.NOT_CHECKED]
        os.kill(process.pid, 0)
