"""What cannot be opened as a journal: a clear error of its own class, before anything runs."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from journal.stage import CHILD
from plain_user import PlainUser

from toolrunner import SqliteJournal
from toolrunner.errors import JournalDamaged, JournalLocked, JournalNotLocal, JournalNoWal, JournalReadOnly, JournalTooNew
from toolrunner.journal import JournalReader, failures, filesystems, schema


def test_a_newer_schema_is_refused_with_the_version_that_is_needed(tmp_path: Path) -> None:
    SqliteJournal.open(tmp_path / "journal.db").close()
    with sqlite3.connect(tmp_path / "journal.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(JournalTooNew, match="knows schema version 99") as caught:
        SqliteJournal.open(tmp_path)
    assert caught.value.found == 99
    with pytest.raises(JournalTooNew):
        JournalReader(tmp_path)


@pytest.mark.parametrize("content", [b"this is a letter and no database" * 100, b"SQLite format 3\0" + bytes(2000)])
def test_what_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal.db").write_bytes(content)
    with pytest.raises(JournalDamaged, match="it is no journal, or damaged"):
        SqliteJournal.open(tmp_path)
    assert (tmp_path / "journal.db").read_bytes() == content
    with pytest.raises(JournalDamaged):
        JournalReader(tmp_path)


def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "journal.db") as connection:
        connection.execute("CREATE TABLE moz_places (url)")
    connection.close()
    before = (tmp_path / "journal.db").read_bytes()
    with pytest.raises(JournalDamaged, match="another program"):
        SqliteJournal.open(tmp_path)
    assert (tmp_path / "journal.db").read_bytes() == before


def test_a_program_that_keeps_it_locked_is_told_from_an_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SqliteJournal.open(tmp_path / "journal.db").close()
    monkeypatch.setattr(schema, "BUSY_WAIT", 0.05)
    monkeypatch.setattr(failures, "BUSY_WAIT", 0.05)
    browser = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    browser.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(JournalLocked, match=r"another program has kept it locked for 0\.05 s"):
            SqliteJournal.open(tmp_path)
    finally:
        browser.execute("ROLLBACK")
        browser.close()
    SqliteJournal.open(tmp_path).close()


def test_a_folder_that_may_not_be_written_to_is_refused(tmp_path: Path, as_plain_user: PlainUser) -> None:
    closed = as_plain_user.home / "closed"
    closed.mkdir(mode=0o555)
    try:
        child = subprocess.run(
            as_plain_user.argv(sys.executable, "-c", CHILD, str(closed / "journal.db")),
            capture_output=True,
            text=True,
            check=True,
            **as_plain_user.popen,
        )
        assert child.stdout.startswith("JournalReadOnly"), child.stdout + child.stderr
        assert "choose a place that you may write to" in child.stdout
        assert list(closed.iterdir()) == []
    finally:
        closed.chmod(0o755)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(JournalReadOnly, match="No such file or directory"):
        SqliteJournal.open(tmp_path / "not" / "there.db")


def test_a_disk_of_another_machine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"1 0 0:1 / / rw - ext4 /dev/vda rw\n2 1 0:2 / {tmp_path} rw - nfs4 server:/home rw\n")
    monkeypatch.setattr(filesystems, "_MOUNTS", mounts)
    with pytest.raises(JournalNotLocal, match="its file system is nfs4"):
        SqliteJournal.open(tmp_path / "journal.db")


def test_a_place_without_write_ahead_logging_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # SQLite's way of locking for file systems without locks; it has no shared memory, so it answers with the old mode.
    def connect(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{path}?mode=rw&vfs=unix-dotfile", uri=True, isolation_level=None)

    monkeypatch.setattr("toolrunner.journal.opening.connect", connect)
    with pytest.raises(JournalNoWal, match="SQLite answered 'delete'"):
        SqliteJournal.open(tmp_path / "journal.db")


def test_after_a_refusal_nothing_is_held(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "journal.db") as connection:
        connection.execute("CREATE TABLE other (x)")
    connection.close()
    with pytest.raises(JournalDamaged):
        SqliteJournal.open(tmp_path)
    (tmp_path / "journal.db").unlink()
    SqliteJournal.open(tmp_path / "journal.db").close()
