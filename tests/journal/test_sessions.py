"""The sessions of a user: the listing of their folders, and which of them go in time."""

import os
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from journal.stage import recorded
from results.legal import result

from toolrunner import SqliteJournal
from toolrunner.facts import Effects, EffectState, Evidence
from toolrunner.journal import OwnerState, Retention, in_doubt, named_place, retire, sessions, sessions_folder, writer
from toolrunner.records import CallDispatched, CallReconciled, CallSettled, Record

NEVER = Retention(age=timedelta(days=10_000), size=2**60)


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "toolrunner" / "sessions"


def unknown(run_id: str = "run-1") -> CallSettled:
    return CallSettled(run_id=run_id, result=result(run_id=run_id, effects=Effects(EffectState.UNKNOWN)))


def known() -> CallSettled:
    return CallSettled(run_id="run-1", result=result(run_id="run-1", effects=Effects(EffectState.COMPLETED, Evidence.ASSUMED)))


def dispatched(*, reconciles: bool, run_id: str = "run-1") -> CallDispatched:
    return CallDispatched(run_id=run_id, name="write", arguments={}, reconciles=reconciles)


def made(session: str, *records: Record, days: float = 0) -> None:
    journal = SqliteJournal.open(session=session, retention=None)
    journal.append(*records)
    journal.close()
    at = datetime.now(UTC).timestamp() - days * 86_400
    for one in (sessions_folder() / session).iterdir():
        os.utime(one, (at, at))


def names() -> list[str]:
    return [one.name for one in sessions()]


def test_sessions_are_listed_newest_first_with_their_owners(state_folder: Path) -> None:
    made("old", days=2)
    made("new", days=1)
    journal = SqliteJournal.open(session="mine", retention=None)
    (state_folder / "empty").mkdir()
    (state_folder / ".hidden").mkdir()
    (state_folder / "a file").write_text("")
    assert names() == ["mine", "new", "old"]
    assert [(one.owner, one.pid) for one in sessions()] == [(OwnerState.ALIVE, os.getpid()), *[(OwnerState.NONE, None)] * 2]
    assert all(one.size > 0 and one.path.is_file() for one in sessions())
    journal.close()


def test_without_a_folder_there_are_none() -> None:
    assert sessions() == ()
    assert retire(Retention()) == ()


def test_a_relative_or_missing_state_folder_is_the_one_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "not/absolute"):
        monkeypatch.setenv("XDG_STATE_HOME", value)
        assert sessions_folder() == Path.home() / ".local" / "state" / "toolrunner" / "sessions"


def test_a_journal_named_by_its_path_knows_its_session(state_folder: Path) -> None:
    made("talk")
    assert named_place(state_folder / "talk").session == "talk"
    assert named_place(state_folder / "talk" / "journal.db").session == "talk"
    assert named_place("/elsewhere/journal.db").session is None


def test_sessions_go_by_their_age() -> None:
    made("old", days=31)
    made("young", days=29)
    assert retire(Retention(size=2**60)) == ("old",)
    assert names() == ["young"]


def test_sessions_go_oldest_first_when_they_are_too_large_together() -> None:
    for day in (1, 2, 3):
        made(f"day-{day}", days=day)
    size = sessions()[0].size
    assert retire(Retention(size=2 * size)) == ("day-3",)
    assert names() == ["day-1", "day-2"]


def test_a_session_that_is_written_to_while_others_are_deleted_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    made("first", days=40)
    made("second", days=50)
    delete = shutil.rmtree

    def slowly(folder: Path, **options: Any) -> None:
        os.utime(sessions_folder() / "second" / "journal.db")
        delete(folder, **options)

    monkeypatch.setattr(shutil, "rmtree", slowly)
    assert retire(Retention()) == ("first",)
    assert names() == ["second"]


def test_what_a_deletion_left_that_broke_off_goes_with_the_next(state_folder: Path) -> None:
    left = state_folder / ".leaving-old-1"
    left.mkdir(parents=True)
    (left / "journal.db").write_text("")
    assert retire(Retention()) == ()
    assert list(state_folder.iterdir()) == []


def test_a_session_with_an_owner_stays() -> None:
    journal = SqliteJournal.open(session="mine", retention=None)
    assert retire(Retention(age=timedelta(0), size=0)) == ()
    assert names() == ["mine"]
    journal.append(recorded(1))
    journal.close()


@pytest.mark.parametrize(
    "records, stays",
    [
        ((dispatched(reconciles=True), unknown()), True),
        ((dispatched(reconciles=True),), True),
        ((dispatched(reconciles=False), unknown()), False),
        ((dispatched(reconciles=True), known()), False),
        ((dispatched(reconciles=True), unknown(), CallReconciled(run_id="run-1", as_="completed", by="user")), False),
        ((dispatched(reconciles=True), unknown(), CallReconciled(run_id="run-1", as_="unknown", by="tool")), True),
    ],
)
def test_a_session_with_a_call_in_doubt_whose_tool_could_tell_stays(records: tuple[Any, ...], stays: bool) -> None:
    made("talk", recorded(1), *records, days=100)
    assert bool(in_doubt((recorded(1), *records))) == stays
    assert retire(Retention()) == (() if stays else ("talk",))
    assert names() == (["talk"] if stays else [])


def test_a_session_that_cannot_be_read_stays(state_folder: Path) -> None:
    made("talk", days=100)
    with sqlite3.connect(state_folder / "talk" / "journal.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    os.utime(state_folder / "talk" / "journal.db", (0, 0))
    assert retire(Retention()) == ()


@pytest.mark.anyio
async def test_an_open_session_sees_to_the_old_ones_when_it_has_nothing_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "IDLE", 0.02)
    made("old", days=40)
    journal = SqliteJournal.open(session="new")
    with anyio.fail_after(10):
        while "old" in names():  # noqa: ASYNC110  it is done at leisure, and not announced
            await anyio.sleep(0.01)
        await journal.aclose()
    assert names() == ["new"]


def test_a_journal_that_was_named_by_its_path_deletes_no_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made("old", days=40)
    journal = SqliteJournal.open(tmp_path / "own.db")
    journal.append(recorded(1))
    journal.close()
    assert names() == ["old"]
