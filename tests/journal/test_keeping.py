"""What the owner's journal takes and when it answers; what is in its file while it rests, and under load."""

import os
import shutil
import sqlite3
from pathlib import Path

import anyio
import pytest
from journal.stage import decided, journal_place, kept, look, numbers, recorded, types, without_seq, write

from toolrunner import Runner, SqliteJournal
from toolrunner.errors import JournalClosed, JournalError
from toolrunner.journal import JournalReader, OwnerState, owner_of, schema, writer
from toolrunner.records import Progress, Record


@pytest.mark.anyio
async def test_records_are_kept_in_order_with_dense_numbers(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    given: list[Record] = [recorded(1), decided(1), recorded(2)]
    with anyio.fail_after(10):
        journal.append(*given[:2])
        last = journal.append(given[2])
        assert last is not None
        await last
        assert [without_seq(one) for one in kept(tmp_path)] == given
        await journal.aclose()
    assert numbers(tmp_path) == [1, 2, 3]


@pytest.mark.anyio
async def test_numbers_go_on_when_it_is_opened_again_and_each_opening_is_noted(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        journal = SqliteJournal.open(tmp_path / "journal.db")
        with anyio.fail_after(10):
            journal.append(recorded(number), decided(number))
            await journal.aclose()
    assert numbers(tmp_path) == [1, 2, 3, 4, 5, 6]
    with JournalReader(tmp_path) as reader:
        openings = reader.openings()
    assert [one.first_seq for one in openings] == [1, 3, 5]
    assert {one.owner.pid for one in openings} == {os.getpid()}
    assert all(one.owner.boot_id and one.owner.starttime and one.host for one in openings)
    assert openings[0].boottime < openings[1].boottime < openings[2].boottime


@pytest.mark.anyio
async def test_what_nobody_waits_for_is_written_all_the_same(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    with JournalReader(tmp_path) as reader, anyio.fail_after(10):
        journal.append(recorded(1))
        while reader.last_seq() == 0:  # noqa: ASYNC110
            await anyio.sleep(0.005)  # nothing announces it: that is the point
    with anyio.fail_after(10):
        await journal.aclose()


@pytest.mark.anyio
async def test_transient_records_are_not_kept_and_give_nothing_to_wait_for(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    with anyio.fail_after(10):
        assert journal.append(Progress(run_id="run-1")) is None
        assert journal.append() is None
        last = journal.append(recorded(1), Progress(run_id="run-1"), decided(1))
        assert last is not None
        await last
        await last  # again: it is known
        await journal.aclose()
    assert types(tmp_path) == ["call/recorded", "call/decided"]


@pytest.mark.anyio
async def test_many_callers_share_a_commit(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")

    async def caller(number: int) -> None:
        for _ in range(10):
            waiting = journal.append(recorded(number))
            assert waiting is not None
            await waiting

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for number in range(16):
                group.start_soon(caller, number)
        await journal.aclose()
    assert numbers(tmp_path) == list(range(1, 161))


@pytest.mark.anyio
async def test_a_waiter_that_is_cancelled_leaves_the_others_waiting(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    with anyio.fail_after(10):
        first, second = journal.append(recorded(1)), journal.append(recorded(2))
        assert first is not None
        assert second is not None
        with anyio.CancelScope() as scope:
            scope.cancel()
            await first
        assert scope.cancelled_caught
        await second
        await journal.aclose()


@pytest.mark.anyio
async def test_a_closed_journal_takes_nothing_and_says_so(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    with anyio.fail_after(10):
        await journal.aclose()
        await journal.aclose()
        assert journal.error == "it is closed"
        late = journal.append(recorded(1))
        assert late is not None
        with pytest.raises(JournalClosed):
            await late
    assert kept(tmp_path) == []


@pytest.mark.anyio
async def test_a_runner_keeps_its_calls_in_it_and_closes_it(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    with anyio.fail_after(20):
        async with Runner([write, look], journal=journal) as runner:
            result = await runner.run("write", {"number": 7})
    assert types(tmp_path) == [
        "call/recorded",
        "call/decided",
        "call/dispatched",
        "effect/planned",
        "effect/applied",
        "call/ended",
        "call/settled",
    ]
    assert kept(tmp_path)[-1].result == result
    assert owner_of(journal_place(tmp_path)) == (OwnerState.NONE, None)


@pytest.mark.anyio
async def test_a_disk_that_does_not_keep_up_fails_the_journal_and_blocks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PENDING_LIMIT", 10)
    monkeypatch.setattr(writer, "RIDE", 60)  # nobody waits for these, so they lie
    journal = SqliteJournal.open(tmp_path / "journal.db")
    with anyio.fail_after(10):
        for number in range(10):
            journal.append(recorded(number))
        assert journal.error is None
        one_more = journal.append(recorded(10))
        assert journal.error is not None
        assert "wait for the disk" in journal.error
        assert one_more is not None
        with pytest.raises(JournalError, match="more than 10 records"):
            await one_more
        await journal.aclose()
    assert len(numbers(tmp_path)) <= 10


def test_it_can_be_closed_without_an_event_loop(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    journal.append(recorded(1))
    journal.close()
    journal.close()
    assert numbers(tmp_path) == [1]


@pytest.mark.anyio
async def test_a_lock_that_comes_and_goes_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "BUSY_WAIT", 0.02)
    journal = SqliteJournal.open(tmp_path / "journal.db")
    browser = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    browser.execute("BEGIN IMMEDIATE")
    waiting = journal.append(recorded(1))
    assert waiting is not None
    with anyio.move_on_after(0.2) as scope:  # several times as long as it waits for one try
        await waiting
    assert scope.cancelled_caught
    assert journal.error is None
    browser.execute("ROLLBACK")
    browser.close()
    with anyio.fail_after(10):
        await waiting
        await journal.aclose()
    assert numbers(tmp_path) == [1]


def in_database(folder: Path) -> int:
    """How many records there are without the log."""
    alone = folder / "alone.db"
    shutil.copy(folder / "journal.db", alone)
    connection = sqlite3.connect(f"file:{alone}?immutable=1", uri=True)
    try:
        return int(connection.execute("SELECT count(*) FROM records").fetchone()[0])
    except sqlite3.DatabaseError:  # no table yet, or copied while it was written to
        return 0
    finally:
        connection.close()


@pytest.mark.anyio
async def test_all_is_in_the_database_when_nothing_was_written_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "IDLE", 0.05)
    journal = SqliteJournal.open(tmp_path / "journal.db")
    log = tmp_path / "journal.db-wal"
    with anyio.fail_after(10):
        journal.append(*(recorded(number) for number in range(100)))
        await journal.flush()
        while in_database(tmp_path) < 100:  # noqa: ASYNC110
            await anyio.sleep(0.01)  # nobody announces what is done at idle
        await journal.aclose()
    assert not log.exists()


@pytest.mark.anyio
async def test_the_log_does_not_grow_without_end_under_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "CHECKPOINT_BYTES", 200_000)
    journal = SqliteJournal.open(tmp_path / "journal.db")
    with anyio.fail_after(30):
        for number in range(300):
            waiting = journal.append(recorded(number), *(decided(number) for _ in range(100)))
            assert waiting is not None
            await waiting
        assert (tmp_path / "journal.db-wal").stat().st_size <= schema.WAL_KEPT + 1_000_000
        await journal.aclose()
