"""What is acknowledged is on the disk: by the order of SQLite's own writes and syncs, and by what a loss of power leaves."""

import sqlite3
from pathlib import Path

import anyio
import pytest
from journal.stage import decided, look, numbers, recorded, write
from journal.vfs import FULL, IOERR_FSYNC, IOERR_WRITE, Disk, Files, Step, images, watched_disk

from toolrunner import Runner, SqliteJournal, ToolContext, tool
from toolrunner.errors import JournalFailed, JournalFull
from toolrunner.facts import NoteKind
from toolrunner.journal import check, schema, writer
from toolrunner.results import Outcome

pytestmark = pytest.mark.anyio

WAL = "journal.db-wal"


def files(folder: Path) -> Files:
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.name.startswith("journal.db") and "shm" not in one.name}


async def test_no_record_is_acknowledged_before_its_bytes_were_synced(tmp_path: Path) -> None:
    with watched_disk() as disk:
        journal = SqliteJournal.open(tmp_path / "journal.db")
        disk.steps.clear()
        with anyio.fail_after(20):
            for number in range(1, 21):
                waiting = journal.append(recorded(number))
                assert waiting is not None
                await waiting
                disk.ack(number)
            await journal.aclose()
    for number in range(1, 21):
        told = disk.steps.index(Step("ack", "", number))
        text = f'"run_id":"run-{number}",'.encode()
        written = max(at for at, step in enumerate(disk.steps[:told]) if step.name == WAL and text in step.data)
        assert any(step.op == "sync" and step.name == WAL for step in disk.steps[written + 1 : told])


async def test_a_loss_of_power_at_any_point_costs_nothing_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RESERVE_AFTER", 2)  # so that pages which were taken back lie in the log
    monkeypatch.setattr(schema, "WAL_KEPT", 60_000)
    monkeypatch.setattr(writer, "CHECKPOINT_BYTES", 60_000)  # and it is begun anew
    folder = tmp_path / "before"
    folder.mkdir()
    with watched_disk() as disk:
        journal = SqliteJournal.open(folder / "journal.db")
        disk.steps.clear()
        before = files(folder)
        with anyio.fail_after(20):
            for number in range(1, 16):
                waiting = journal.append(recorded(number), decided(number))
                if number % 3 == 0:
                    assert waiting is not None
                    await waiting
                    disk.ack(2 * number)
            await journal.aclose()
            disk.ack(30)
    lost = 0
    for at, (acknowledged, image) in enumerate(images(disk.steps, before)):
        after = tmp_path / f"after-{at}"
        after.mkdir()
        for name, content in image.items():
            (after / name).write_bytes(content)
        with sqlite3.connect(after / "journal.db") as connection:
            found = [seq for (seq,) in connection.execute("SELECT seq FROM records ORDER BY seq")]
        connection.close()
        assert found == list(range(1, len(found) + 1))
        assert len(found) >= acknowledged
        lost += len(found) < 30
    assert lost > 5, "the points were all at the end"


async def test_what_a_loss_of_power_left_is_opened_again_and_goes_on(tmp_path: Path) -> None:
    with watched_disk() as disk:
        journal = SqliteJournal.open(tmp_path / "journal.db")
        disk.steps.clear()
        before = files(tmp_path)
        with anyio.fail_after(20):
            waiting = journal.append(recorded(1))
            assert waiting is not None
            await waiting
            disk.ack(1)
            journal.append(recorded(2))
            await journal.aclose()
    acknowledged, image = next(one for one in images(disk.steps, before) if one[0] == 1)
    assert acknowledged == 1
    again = tmp_path / "again"
    again.mkdir()
    for name, content in image.items():
        (again / name).write_bytes(content)
    journal = SqliteJournal.open(again)
    with anyio.fail_after(20):
        journal.append(recorded(3))
        await journal.aclose()
    assert numbers(again) == [1, 2]
    assert check(again).problems == ()


def fail_wal(op: str, code: int) -> Disk:
    return Disk(fail=lambda step: code if (step.op, step.name) == (op, WAL) else 0)


@pytest.mark.parametrize(
    "op, code, kind", [("sync", IOERR_FSYNC, JournalFailed), ("write", FULL, JournalFull), ("write", IOERR_WRITE, JournalFailed)]
)
async def test_a_commit_that_fails_is_the_last_one_and_whoever_waits_is_told(
    tmp_path: Path, op: str, code: int, kind: type[Exception]
) -> None:
    with watched_disk() as disk:
        journal = SqliteJournal.open(tmp_path / "journal.db")
        with anyio.fail_after(20):
            first = journal.append(recorded(1))
            assert first is not None
            await first
            assert journal.error is None
            disk.fail = fail_wal(op, code).fail
            second = journal.append(recorded(2))
            assert second is not None
            with pytest.raises(kind):
                await second
            assert journal.error
            disk.fail = lambda _: 0
            steps = len(disk.steps)
            third = journal.append(recorded(3))
            assert third is not None
            with pytest.raises(kind):  # the disk is well again; what it lost in between is not known, so nothing follows
                await third
            await journal.aclose()
            assert isinstance(journal.failure, kind)
        assert [step for step in disk.steps[steps:] if b"run-3" in step.data] == []
    journal = SqliteJournal.open(tmp_path / "journal.db")
    with anyio.fail_after(20):
        await journal.aclose()
    assert 1 in numbers(tmp_path)
    assert 3 not in numbers(tmp_path)


async def test_a_runner_on_a_journal_that_failed_starts_nothing_and_settles_what_it_started(tmp_path: Path) -> None:
    with watched_disk() as disk:
        journal = SqliteJournal.open(tmp_path / "journal.db")
        with anyio.fail_after(20):
            async with Runner([write, look], journal=journal) as runner:
                assert (await runner.run("write", {"number": 1})).outcome is Outcome.SUCCEEDED
                disk.fail = fail_wal("sync", IOERR_FSYNC).fail
                for _ in range(2):
                    refused = await runner.run("write", {"number": 2})
                    assert (refused.started, refused.outcome) == (False, Outcome.REJECTED)
                    assert refused.error is not None
                    assert "the journal: " in refused.error.message
                    assert [note.kind for note in refused.notes] == [NoteKind.JOURNAL_ERROR]
                disk.fail = lambda _: 0
                assert not (await runner.run("look", {"number": 3})).started


async def test_a_journal_that_fails_while_a_body_runs_leaves_a_note_and_the_act_is_not_done(tmp_path: Path) -> None:
    done: list[int] = []
    with watched_disk() as disk:
        journal = SqliteJournal.open(tmp_path / "journal.db")

        @tool
        async def act(ctx: ToolContext[None], number: int) -> None:
            """Act."""
            disk.fail = fail_wal("sync", IOERR_FSYNC).fail
            async with ctx.effect("test", "thing"):
                done.append(number)

        with anyio.fail_after(20):
            async with Runner([act], journal=journal) as runner:
                result = await runner.run("act", {"number": 1})
    assert done == []
    assert result.started
    assert result.outcome is Outcome.FAILED
    assert [note.kind for note in result.notes] == [NoteKind.JOURNAL_ERROR]
