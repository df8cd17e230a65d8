"""Writes that are killed or stopped: the old content or the new one, no leftovers, and what is known of it."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from builtin.workplace import leftovers, words

from toolrunner import AbortController, Runner, ToolResult
from toolrunner.testing import abort_sweep
from toolrunner.tools.builtin import atomic, builtins
from toolrunner.tools.builtin.reading import chunks

pytestmark = pytest.mark.anyio


KILLED_WRITERS = """
import os, signal, sys, time
from toolrunner.tools.builtin.atomic import look, put

def write(ready):
    folder = os.open(sys.argv[1], os.O_RDONLY)
    os.write(ready, b"!")
    while True:
        for data in (b"a" * 300_000, b"b" * 200_000):
            put("f", folder, data, look("f", folder))

for line in sys.stdin:
    end, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        write(ready)
    os.read(end, 1)
    time.sleep(float(line))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(end), os.close(ready)
    print("killed", flush=True)
"""
"""One process that has imported all it needs forks a writer for each line, and kills it after so many seconds."""


@pytest.mark.case("P64")
@pytest.mark.processes
def test_a_writer_that_is_killed_at_any_moment_leaves_the_old_content_or_the_new_one(tmp_path: Path) -> None:
    good = {hashlib.sha256(b"a" * 300_000).digest(), hashlib.sha256(b"b" * 200_000).digest()}
    (tmp_path / "f").write_bytes(b"a" * 300_000)
    left = 0
    command = [sys.executable, "-c", KILLED_WRITERS, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writers:
        assert writers.stdin is not None
        assert writers.stdout is not None
        for number in range(100):
            print(0.0007 * (number % 20), file=writers.stdin, flush=True)  # somewhere in the first dozen of its writes
            assert writers.stdout.readline() == "killed\n"
            assert hashlib.sha256((tmp_path / "f").read_bytes()).digest() in good
            assert set(os.listdir(tmp_path)) - {"f"} == set(leftovers(tmp_path))
            assert len(leftovers(tmp_path)) <= 1  # the next writer has removed the one before
            left += len(leftovers(tmp_path))
    assert left  # or no kill came while anything was under way
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        atomic.put("f", folder, b"end", atomic.look("f", folder))
    finally:
        os.close(folder)
    assert os.listdir(tmp_path) == ["f"]


def test_the_temporary_file_of_a_living_writer_is_not_removed(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        with atomic._temporary(directory, 0o600) as (name, _):
            atomic.remove_leftovers(directory)
            assert os.listdir(tmp_path) == [name]
        assert os.listdir(tmp_path) == []
    finally:
        os.close(directory)


def test_what_only_looks_like_a_leftover_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("x")
    names = [f".toolrunner-{number:016x}.tmp" for number in range(3)]
    os.symlink("victim", tmp_path / names[0])
    os.mkfifo(tmp_path / names[1])
    (tmp_path / names[2]).mkdir()
    (tmp_path / ".toolrunner-mine.tmp").touch()
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        atomic.remove_leftovers(directory)
    finally:
        os.close(directory)
    assert sorted(os.listdir(tmp_path)) == sorted([*names, ".toolrunner-mine.tmp", "victim"])


@pytest.mark.parametrize("undo_on_abort", [False, True])
async def test_a_write_that_is_stopped_anywhere_is_not_begun_or_completed_and_recorded(
    tmp_path: Path, undo_on_abort: bool
) -> None:
    rounds = set[tuple[str, str]]()
    async with Runner(builtins(tmp_path, undo_on_abort=undo_on_abort)) as runner:
        with anyio.fail_after(60):
            (tmp_path / "d").mkdir()

            async def scenario(signal: Any) -> ToolResult:
                (tmp_path / "f").write_text("old")
                return await runner.run("write_file", {"path": "f", "content": "new"}, signal=signal)

            async for one in abort_sweep(scenario):
                result, text = one.value, (tmp_path / "f").read_text()
                stages = [record.stage for record in result.effects.records if record.kind == "file_write"]
                rounds.add((str(result.effects.state), text))
                if not result.started:
                    assert (text, stages) == ("old", [])
                elif result.effects.state == "none":
                    assert (text, stages) == ("old", ["not_applied"])
                elif undo_on_abort and result.effects.state == "reverted":
                    assert (text, stages) == ("old", ["undone"])
                else:
                    assert (text, stages) == ("new", ["applied"])
                assert leftovers(tmp_path) == []
    assert ("completed", "new") in rounds
    assert ("none", "old") in rounds
    assert (("reverted", "old") in rounds) == undo_on_abort


@pytest.mark.parametrize("name", ["write_file", "edit_file"])
async def test_a_write_that_is_stopped_while_the_old_content_is_read_is_known_to_have_changed_nothing(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_text("old")
    controller = AbortController()

    def stop(fd: int, check: Any, start: int = 0) -> Any:
        controller.abort()
        yield from chunks(fd, check, start)

    monkeypatch.setattr("toolrunner.tools.builtin.changing.chunks", stop)
    arguments = {"path": "f", "content": "new"} if name == "write_file" else {"path": "f", "old_text": "old", "new_text": "new"}
    async with Runner(builtins(tmp_path)) as runner:
        with anyio.fail_after(10):
            result = await runner.run(name, arguments, signal=controller.signal)
    assert (result.outcome, result.started, result.effects.state, result.retry) == ("aborted", True, "none", "safe")
    assert words(result) == f"It was stopped before it changed {tmp_path}/f."
    assert (tmp_path / "f").read_text() == "old"
