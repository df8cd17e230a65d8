"""Who may own a journal: one process at a time, until it closes it or dies; a forked child does not."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from journal.stage import CHILD, journal_place, kept, numbers, recorded

from toolrunner import SqliteJournal
from toolrunner.errors import JournalFailed, JournalForked, JournalOwned
from toolrunner.journal import OwnerState, owner_of


def opened_by_another(path: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "opened\n"
    return child


def test_a_second_owner_in_this_process_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    (tmp_path / "link").symlink_to(tmp_path)
    for path in (tmp_path / "journal.db", tmp_path, tmp_path / "link" / "journal.db"):
        with pytest.raises(JournalOwned, match=f"process {os.getpid()} owns it"):
            SqliteJournal.open(path)
    # The refused ones opened and closed nothing: the lock still holds against another process.
    child = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, check=True)
    assert child.stdout.startswith(f"JournalOwned the journal {tmp_path}/journal.db: process {os.getpid()} owns it")
    journal.append(recorded(1))
    journal.close()
    assert numbers(tmp_path) == [1]


def test_an_owner_in_another_process_is_named_and_its_death_frees_the_journal(tmp_path: Path) -> None:
    with opened_by_another(tmp_path / "journal.db") as child:
        with pytest.raises(JournalOwned, match=f"process {child.pid} owns it") as caught:
            SqliteJournal.open(tmp_path)
        assert caught.value.pid == child.pid
        assert owner_of(journal_place(tmp_path)) == (OwnerState.ALIVE, child.pid)
        child.kill()
    assert owner_of(journal_place(tmp_path)) == (OwnerState.NONE, None)
    SqliteJournal.open(tmp_path).close()


def test_a_journal_that_is_closed_a_second_time_takes_nothing_from_the_next_owner(tmp_path: Path) -> None:
    first = SqliteJournal.open(tmp_path / "journal.db")
    first.close()
    second = SqliteJournal.open(tmp_path / "journal.db")
    first.close()
    child = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, check=True)
    assert child.stdout.startswith("JournalOwned")
    with pytest.raises(JournalOwned):
        SqliteJournal.open(tmp_path)
    second.close()


def test_one_that_is_deleted_while_it_is_opened_is_not_said_to_have_an_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.lockf

    def late(file: int, how: int) -> None:
        (tmp_path / "owner.lock").unlink()
        lock(file, how)

    monkeypatch.setattr(fcntl, "lockf", late)
    with pytest.raises(JournalFailed, match="it was deleted while it was opened"):
        SqliteJournal.open(tmp_path / "journal.db")
    monkeypatch.undo()
    SqliteJournal.open(tmp_path / "journal.db").close()


def test_looking_for_the_owner_does_not_end_its_ownership(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    assert owner_of(journal_place(tmp_path)) == (OwnerState.ALIVE, os.getpid())
    child = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, check=True)
    assert child.stdout.startswith("JournalOwned")
    journal.close()


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")  # 3.12 on: the child does nothing that needs threads
async def test_a_forked_child_writes_nothing_and_drops_no_lock(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    journal.append(recorded(1))
    with anyio.fail_after(20):
        await journal.flush()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                late = journal.append(recorded(2))
                try:
                    assert late is not None
                    late.__await__().send(None)
                except JournalForked:
                    code = 0 if "forked" in (journal.error or "") else 2
                journal.close()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        child = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, check=True)
        assert child.stdout.startswith("JournalOwned")
        journal.append(recorded(3))
        await journal.aclose()
    assert [record.run_id for record in kept(tmp_path)] == ["run-1", "run-3"]
