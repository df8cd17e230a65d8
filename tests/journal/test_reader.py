"""Readers: they see what is committed, whoever owns the file and whether anybody does, and leave nothing behind."""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from journal.stage import KillableWriter, decided, kept, numbers, recorded, write
from plain_user import PlainUser

from toolrunner import Runner, SqliteJournal
from toolrunner.errors import JournalMissing, JournalUnreadable
from toolrunner.journal import JournalReader
from toolrunner.journal.looking import Look
from toolrunner.records import CallDispatched, CallRecorded

READS = """
import sys
from toolrunner.errors import JournalError
from toolrunner.journal import JournalReader
try:
    with JournalReader(sys.argv[1]) as reader:
        print(reader.last_seq())
except JournalError as error:
    print(type(error).__name__, error)
"""


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {one.name: (one.stat().st_mtime_ns, one.stat().st_size) for one in folder.iterdir() if "shm" not in one.name}


def test_reading_a_closed_journal_makes_no_file_and_changes_none(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    journal.append(recorded(1), decided(1))
    journal.close()
    before = listing(tmp_path)
    assert set(before) == {"journal.db", "owner.lock"}
    with JournalReader(tmp_path) as reader:
        assert reader.last_seq() == 2
        assert listing(tmp_path) == before
    assert listing(tmp_path) == before


@pytest.mark.anyio
async def test_a_reader_follows_an_owner_that_writes_closes_and_comes_back(tmp_path: Path) -> None:
    SqliteJournal.open(tmp_path / "journal.db").close()
    with JournalReader(tmp_path) as reader, anyio.fail_after(20):
        assert reader.changed()
        assert not reader.changed()
        for number in (1, 2):
            journal = SqliteJournal.open(tmp_path)
            waiting = journal.append(recorded(number))
            assert waiting is not None
            await waiting
            assert reader.changed()
            assert [entry.seq for entry in reader.since(number - 1)] == [number]
            await journal.aclose()
            assert reader.last_seq() == number
    assert numbers(tmp_path) == [1, 2]


@pytest.mark.anyio
async def test_a_reader_that_stays_connected_keeps_nobody_from_closing(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    with JournalReader(tmp_path) as reader, anyio.fail_after(10):
        journal.append(recorded(1))
        await journal.flush()
        assert reader.last_seq() == 1
        await journal.aclose()  # cannot leave WAL mode now
        assert reader.last_seq() == 1
    before = listing(tmp_path)
    assert numbers(tmp_path) == [1]
    assert listing(tmp_path) == before
    journal = SqliteJournal.open(tmp_path)
    with anyio.fail_after(10):
        journal.append(recorded(2))
        await journal.aclose()
    assert numbers(tmp_path) == [1, 2]


@pytest.mark.anyio
async def test_a_reader_of_a_journal_in_wal_mode_without_a_log_sees_the_next_owner(tmp_path: Path) -> None:
    SqliteJournal.open(tmp_path / "journal.db").close()
    connection = sqlite3.connect(tmp_path / "journal.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    for side in tmp_path.glob("journal.db-*"):
        side.unlink()  # empty: nothing was written
    with JournalReader(tmp_path) as reader, anyio.fail_after(10):
        assert reader.last_seq() == 0
        assert set(listing(tmp_path)) == {"journal.db", "owner.lock"}
        journal = SqliteJournal.open(tmp_path)
        journal.append(recorded(1))
        await journal.flush()
        assert reader.last_seq() == 1
        await journal.aclose()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_what_a_killed_owner_left_can_be_read_at_once(tmp_path: Path, backend: str) -> None:
    with KillableWriter(tmp_path / "journal.db", backend) as owner:
        acknowledged = owner.kill_after(20)
    assert (tmp_path / "journal.db-wal").stat().st_size > 0
    before = set(listing(tmp_path))
    assert len(numbers(tmp_path)) >= acknowledged
    assert set(listing(tmp_path)) == before


def test_a_copy_without_its_shared_memory_is_refused_and_not_read_in_half(tmp_path: Path) -> None:
    with KillableWriter(tmp_path / "journal.db", "asyncio") as owner:
        owner.kill_after(5)
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("journal.db", "journal.db-wal"):
        shutil.copy(tmp_path / name, copy / name)
    with pytest.raises(JournalUnreadable, match="together with its -wal and -shm files"):
        JournalReader(copy)
    assert {one.name for one in copy.iterdir()} == {"journal.db", "journal.db-wal"}


def test_a_journal_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(JournalMissing):
        JournalReader(tmp_path / "journal.db")
    assert list(tmp_path.iterdir()) == []


def as_other(user: PlainUser, folder: Path) -> str:
    command = user.argv(sys.executable, "-c", READS, str(folder))
    said: str = subprocess.run(command, capture_output=True, text=True, check=True, **user.popen).stdout
    return said


@pytest.mark.root
def test_another_user_who_may_not_read_it_is_told_so(as_plain_user: PlainUser) -> None:
    folder = as_plain_user.home / "of-root"
    folder.mkdir(mode=0o755)
    SqliteJournal.open(folder / "journal.db").close()
    assert as_other(as_plain_user, folder / "journal.db").startswith("JournalUnreadable")


@pytest.mark.root
@pytest.mark.parametrize("is_open", [True, False])
def test_another_user_who_may_read_it_reads_it(as_plain_user: PlainUser, is_open: bool) -> None:
    folder = as_plain_user.home / "of-root"
    folder.mkdir(mode=0o755)
    journal = SqliteJournal.open(folder / "journal.db")
    journal.append(recorded(1))
    if not is_open:
        journal.close()
    else:
        while not numbers(folder):
            pass
    for one in folder.iterdir():
        one.chmod(0o644)
    assert as_other(as_plain_user, folder / "journal.db") == "1\n"
    journal.close()


def test_a_journal_in_a_folder_that_may_not_be_written_to_can_be_read(as_plain_user: PlainUser) -> None:
    folder = as_plain_user.home / "archive"
    folder.mkdir()
    journal = SqliteJournal.open(folder / "journal.db")
    journal.append(recorded(1))
    journal.close()
    for one in folder.iterdir():
        one.chmod(0o444)
    folder.chmod(0o555)
    try:
        assert as_other(as_plain_user, folder / "journal.db") == "1\n"
    finally:
        folder.chmod(0o755)


# Questions.


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    journal.append(
        recorded(1, call_id="call_a", idempotency_key="k"),
        recorded(2, call_id="call_b", idempotency_key="k"),
        recorded(3, call_id="call_bc"),
        CallDispatched(run_id="run-2", name="write", arguments={}, reconciles=True),
        CallDispatched(run_id="run-3", name="write", arguments={'"reconciles":true': 1}),
    )
    journal.close()
    return tmp_path


def test_records_are_found_by_call_type_and_key(talk: Path) -> None:
    with JournalReader(talk) as reader:
        assert [entry.seq for entry in reader.of_run("run-2")] == [2, 4]
        assert [entry.seq for entry in reader.of_type("call/dispatched", "call/ended")] == [4, 5]
        assert [entry.record.run_id for entry in reader.of_key("k")] == ["run-1", "run-2"]
        assert reader.keys() == {"k": ("run-1", "run-2")}
        assert reader.unsettled() == ("run-1", "run-2", "run-3")
        assert [entry.seq for entry in reader.since(1, 2)] == [2, 3]
        assert reader.since(5) == ()
        assert reader.reconcilable() == ("run-2",)


@pytest.mark.parametrize(
    "prefix, found",
    [
        ("run-2", ["run-2"]),
        ("run-", ["run-1", "run-2", "run-3"]),
        ("call_b", ["run-2"]),
        ("call_", ["run-1", "run-2", "run-3"]),
        ("call_bc", ["run-3"]),
        ("%", []),
        ("x", []),
    ],
)
def test_a_call_is_found_by_the_beginning_of_either_id(talk: Path, prefix: str, found: list[str]) -> None:
    with JournalReader(talk) as reader:
        assert [run_id for run_id, _ in reader.find(prefix)] == found


@pytest.mark.anyio
async def test_settled_calls_are_no_longer_unsettled(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    with anyio.fail_after(20):
        async with Runner([write], journal=journal) as runner:
            await runner.run("write", {"number": 1})
    with JournalReader(tmp_path) as reader:
        assert reader.unsettled() == ()
        first = next(iter(reader))
    assert first.boottime > 0
    assert not first.altered


def test_many_records_come_page_by_page(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    journal.append(*(recorded(number) for number in range(2_500)))
    journal.close()
    assert [record.seq for record in kept(tmp_path)] == list(range(1, 2_501))
    assert os.path.exists(tmp_path / "journal.db")


class HalfWritten:
    """A connection that meets the log's index half written, as often as told."""

    def __init__(self, connection: sqlite3.Connection, times: int) -> None:
        self._connection, self.times = connection, times

    def execute(self, query: str, values: Any) -> Any:
        if self.times:
            self.times -= 1
            error = sqlite3.OperationalError("attempt to write a readonly database")
            error.sqlite_errorname = "SQLITE_READONLY_RECOVERY"
            raise error
        return self._connection.execute(query, values)

    def close(self) -> None:
        self._connection.close()


@pytest.mark.parametrize("times, is_read", [(1, True), (20, True), (21, False)])
def test_a_reader_that_meets_its_owner_in_the_middle_of_a_write_looks_again(times: int, is_read: bool, tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "j.db")
    journal.append(CallRecorded(run_id="r", name="t", arguments={}))
    journal.close()
    with JournalReader(tmp_path / "j.db") as reader:
        connection: Any = HalfWritten(reader._look.connection, times)
        reader._look = Look(connection, is_fixed=False)
        if is_read:
            assert reader.last_seq() == 1
        else:
            with pytest.raises(JournalUnreadable, match="as its owner"):
                reader.last_seq()
