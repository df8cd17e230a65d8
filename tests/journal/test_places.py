"""Where a journal is: a private folder for each session, or the file that is named."""

import os
import stat
from pathlib import Path

import pytest

from toolrunner import SqliteJournal
from toolrunner.errors import ConfigError


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_session_has_a_private_folder_of_its_name(state_folder: Path) -> None:
    SqliteJournal.open(session="talk").close()
    folder = state_folder / "toolrunner" / "sessions" / "talk"
    assert {one.name for one in folder.iterdir()} == {"journal.db", "owner.lock"}
    for one in (folder, folder.parent, folder.parent.parent):
        assert stat.S_IMODE(one.stat().st_mode) == 0o700
    for one in folder.iterdir():
        assert stat.S_IMODE(one.stat().st_mode) == 0o600


def test_the_files_that_come_while_it_is_open_are_private_too(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        journal = SqliteJournal.open(tmp_path / "journal.db")
    finally:
        os.umask(before)
    assert {one.name for one in tmp_path.glob("journal.db*")} == {"journal.db", "journal.db-wal", "journal.db-shm"}
    assert {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.glob("*.db*")} == {0o600}
    journal.close()


def test_without_a_name_each_opening_is_a_session_of_its_own() -> None:
    one, other = SqliteJournal.open(), SqliteJournal.open()
    assert one.session is not None
    assert other.session is not None
    assert one.session != other.session
    one.close()
    other.close()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-x", ".x", "a\0b", "a" * 101, "a b", 7])
def test_a_name_that_is_no_session_is_refused(name: str, state_folder: Path) -> None:
    with pytest.raises(ConfigError, match="session"):
        SqliteJournal.open(session=name)
    assert not state_folder.exists()


def test_a_path_and_a_session_are_one_too_many(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="path"):
        SqliteJournal.open(tmp_path / "journal.db", session="talk")
