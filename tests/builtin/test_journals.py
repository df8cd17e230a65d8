"""A journal that lies inside a root: the file tools leave it alone, so a look at its lock does not let a second owner in."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from builtin.workplace import Workplace

from toolrunner import Runner, SqliteJournal
from toolrunner.errors import JournalOwned
from toolrunner.journal import JournalReader, check
from toolrunner.tools import Command, command_tool
from toolrunner.tools.builtin import builtins

pytestmark = pytest.mark.anyio

FILES = ["calls.db", "calls.db-wal", "calls.db-shm", "calls.db.owner.lock", "linked", "soft"]


async def test_the_files_of_the_runners_own_journal_are_nobodys_to_touch(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    async with Runner(builtins(tmp_path), journal=SqliteJournal.open(path)) as runner:
        place = Workplace(runner, tmp_path)
        (tmp_path / "linked").hardlink_to(tmp_path / "calls.db.owner.lock")
        (tmp_path / "soft").symlink_to("calls.db.owner.lock")
        for name in FILES:
            assert "journal" in await place.refusal("read_file", path=name)
            assert "journal" in await place.refusal("write_file", path=name, content="x")
            assert "journal" in await place.refusal("edit_file", path=name, old_text="a", new_text="b")
        found = await place.use("search", pattern="calls")
        assert found.value is not None
        assert "journal" in await place.refusal("search", pattern="a", path="calls.db")
        _second_owner_is_refused(path)
    assert check(path).problems == ()


def _second_owner_is_refused(path: Path) -> None:
    """In a process of its own: a lock of POSIX is nothing between two openings of one process."""
    program = f"from toolrunner import SqliteJournal; SqliteJournal.open({str(path)!r})"
    tried = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert JournalOwned.__name__ in tried.stderr


async def test_what_toolrunner_writes_into_a_watched_folder_is_no_effect_of_a_call(tmp_path: Path) -> None:
    @command_tool
    def talk(script: str) -> Command:
        """Run a line in the folder that is watched, with more output than is kept."""
        return Command(("sh", "-c", script), watch=[str(tmp_path)], output_limit=10)

    async with Runner([talk], journal=SqliteJournal.open(tmp_path / "calls.db"), spill_dir=tmp_path / "spill") as runner:
        with anyio.fail_after(60):
            quiet = await runner.run("talk", {"script": "echo 123456789 123456789"})
            busy = await runner.run("talk", {"script": f"echo > '{tmp_path}/mine'"})
    assert quiet.process is not None
    assert quiet.process.spill
    assert (quiet.effects.state, quiet.effects.changes) == ("unknown", ())
    assert [Path(change.path).name for change in busy.effects.changes or ()] == ["mine"]


async def test_another_programs_journal_is_told_by_what_it_is(tmp_path: Path) -> None:
    SqliteJournal.open(tmp_path / "other.db").close()
    (tmp_path / "renamed.txt").write_bytes((tmp_path / "other.db").read_bytes())
    async with Runner(builtins(tmp_path)) as runner:
        place = Workplace(runner, tmp_path)
        for name in ("other.db", "other.db.owner.lock", "renamed.txt"):
            assert "journal" in await place.refusal("read_file", path=name)
            assert "journal" in await place.refusal("write_file", path=name, content="x")
    with JournalReader(tmp_path / "other.db") as reader:
        assert reader.last_seq() == 0


async def test_the_folder_of_the_sessions_is_left_alone_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with Runner(builtins(tmp_path), session="mine") as runner:
        place = Workplace(runner, tmp_path)
        folder = "state/toolrunner/sessions"
        for path in (folder, f"{folder}/mine"):
            assert "journal" in await place.refusal("list_dir", path=path)
        assert "journal" in await place.refusal("write_file", path=f"{folder}/mine/note", content="x")
        assert "journal" in await place.refusal("write_file", path=f"{folder}/yours/journal.db", content="x")
        assert (await place.use("write_file", path="state/toolrunner/note", content="x")).outcome == "succeeded"
