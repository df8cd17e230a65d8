"""A disk or a file that is full: told when the journal is opened, and what it does when that comes later."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from journal.stage import look
from plain_user import PlainUser

from toolrunner import Runner, SqliteJournal
from toolrunner.errors import JournalFull
from toolrunner.journal import failures


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
