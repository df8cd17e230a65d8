"""The owner's journal: what it takes, when it answers, who may be its owner, and what it says when it cannot be."""

import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from journal.stage import decided, kept, look, numbers, recorded, types, without_seq, write
from plain_user import PlainUser

from toolrunner import Runner, SqliteJournal
from toolrunner.errors import (
    ConfigError,
    JournalClosed,
    JournalDamaged,
    JournalError,
    JournalForked,
    JournalFull,
    JournalLocked,
    JournalNotLocal,
    JournalNoWal,
    JournalOwned,
    JournalReadOnly,
    JournalTooNew,
)
from toolrunner.journal import JournalReader, OwnerState, Place, failures, filesystems, owner_of, schema, writer
from toolrunner.records import Progress, Record

CHILD = """
import sys
from toolrunner import SqliteJournal
from toolrunner.errors import JournalError
try:
    journal = SqliteJournal.open(sys.argv[1])
except JournalError as error:
    print(type(error).__name__, error)
else:
    print("opened", flush=True)
    sys.stdin.read()
    journal.close()
"""


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def opened_by_another(path: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "opened\n"
    return child


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


def journal_place(folder: Path) -> Place:
    with JournalReader(folder) as reader:
        return reader.place


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


# Places and modes.


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


# Owners.


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


# What cannot be opened: a clear error of its own class, before anything runs.


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


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "tiny"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.root
@pytest.mark.parametrize("left", range(4, 60, 8))
def test_a_full_disk_is_told_when_it_is_opened(left: int, tiny_disk: Path) -> None:
    """Whichever file it is for which no room is left: lock, database, log or index of the log."""
    (tiny_disk / "others").write_bytes(bytes((256 - left) * 1024))
    with pytest.raises(JournalFull, match="make room"):
        SqliteJournal.open(tiny_disk / "journal.db")


@pytest.mark.root
@pytest.mark.anyio
async def test_a_disk_that_fills_up_fails_the_journal_and_nothing_more_starts(tiny_disk: Path) -> None:
    journal = SqliteJournal.open(tiny_disk / "journal.db")
    with anyio.fail_after(30):
        async with Runner([look], journal=journal) as runner:
            assert (await runner.run("look", {"number": 1})).started
            (tiny_disk / "others").write_bytes(bytes(200 * 1024)[: free_bytes(tiny_disk)])
            results = [await runner.run("look", {"number": number}) for number in range(3)]
    assert not results[-1].started
    assert isinstance(journal.failure, JournalFull)


def free_bytes(folder: Path) -> int:
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


LIMITED = """
import anyio, resource, signal, sys
from toolrunner import Runner, SqliteJournal, tool
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
@tool(read_only=True)
async def look(text: str) -> str:
    "Look."
    return text
async def main():
    journal = SqliteJournal.open(sys.argv[1])
    async with Runner([look], journal=journal) as runner:
        started = [(await runner.run("look", {"text": "x" * 1000})).started for _ in range(200)]
    print(type(journal.failure).__name__, started[0], started[-1], journal.failure)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
anyio.run(main, backend=sys.argv[2])
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_limit_of_file_sizes_is_a_full_disk_too(backend: str, as_plain_user: PlainUser) -> None:
    child = subprocess.run(
        as_plain_user.argv(sys.executable, "-c", LIMITED, str(as_plain_user.home / "journal.db"), backend),
        capture_output=True,
        text=True,
        check=False,
        **as_plain_user.popen,
    )
    assert child.stdout.startswith("JournalFull True False"), child.stdout + child.stderr
    assert "File too large" in child.stdout


def test_the_limit_of_this_process_is_not_the_reason(tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    assert failures._no_room(tmp_path / "journal.db") is None
    assert list(tmp_path.iterdir()) == []


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


# The file while it rests.


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
