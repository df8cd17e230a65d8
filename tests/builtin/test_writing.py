"""write_file and edit_file: the old content or the new one, inside the roots, recorded with what was there before."""

import hashlib
import json
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from builtin.workplace import words, workplace
from hypothesis import given
from hypothesis import strategies as st
from plain_user import PlainUser

from toolrunner import AbortController, Runner, ToolCall, ToolResult
from toolrunner.errors import ToolError
from toolrunner.testing import abort_sweep
from toolrunner.tools.builtin import atomic, builtins
from toolrunner.tools.builtin.changing import old_at, undo_of, version_of
from toolrunner.tools.builtin.edit_file import lines_of, occurrences
from toolrunner.tools.builtin.reading import chunks
from toolrunner.tools.builtin.roots import read_roots
from toolrunner.tools.builtin.walking import follow

pytestmark = pytest.mark.anyio


def digest(text: str) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(text.encode()).hexdigest(), "size": len(text.encode())}


def receipts(result: ToolResult) -> list[Any]:
    return [json.loads(record.receipt) for record in result.effects.records if record.receipt]


def leftovers(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if atomic.TEMPORARY.fullmatch(name)]


async def test_a_new_file_is_made_with_its_folders_and_each_is_an_effect(tmp_path: Path) -> None:
    async with workplace(tmp_path) as place:
        result = await place.use("write_file", path="a/b/c.txt", content="héllo\n")
    assert (tmp_path / "a/b/c.txt").read_text() == "héllo\n"
    assert words(result) == "Made a/b/c.txt (7 bytes)."
    assert [(one.kind, one.target, one.stage) for one in result.effects.records] == [
        ("folder_make", f"{tmp_path}/a", "applied"),
        ("folder_make", f"{tmp_path}/a/b", "applied"),
        ("file_write", f"{tmp_path}/a/b/c.txt", "applied"),
    ]
    assert receipts(result) == [{"path": f"{tmp_path}/a/b/c.txt", "before": None, "after": digest("héllo\n")}]
    assert (result.effects.state, result.effects.evidence) == ("completed", "reported")


async def test_a_file_is_replaced_and_the_receipt_names_both_contents(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    async with workplace(tmp_path) as place:
        result = await place.use("write_file", path="f", content="new!")
    assert (tmp_path / "f").read_text() == "new!"
    assert receipts(result) == [{"path": f"{tmp_path}/f", "before": digest("old"), "after": digest("new!")}]
    assert result.value == receipts(result)[0]


@pytest.mark.parametrize("mode, kept", [(0o640, 0o640), (0o755, 0o755), (0o4755, 0o755), (0o200, 0o200)])
async def test_mode_bits_stay_and_setuid_does_not(tmp_path: Path, mode: int, kept: int) -> None:
    if mode == 0o200 and os.geteuid() != 0:
        pytest.skip("who is not root cannot read this file, so its digest cannot be taken")
    (tmp_path / "f").write_text("old")
    os.chmod(tmp_path / "f", mode)
    async with workplace(tmp_path) as place:
        await place.use("write_file", path="f", content="new")
    assert stat.S_IMODE(os.stat(tmp_path / "f").st_mode) == kept


async def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        async with workplace(tmp_path) as place:
            await place.use("write_file", path="f", content="new")
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(tmp_path / "f").st_mode) == 0o640


@pytest.mark.root
async def test_root_keeps_the_owner(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    os.chown(tmp_path / "f", 1234, 4321)
    async with workplace(tmp_path) as place:
        await place.use("edit_file", path="f", old_text="old", new_text="new")
    found = os.stat(tmp_path / "f")
    assert (found.st_uid, found.st_gid) == (1234, 4321)


async def test_extended_attributes_stay(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    try:
        os.setxattr(tmp_path / "f", "user.colour", b"red")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    async with workplace(tmp_path) as place:
        await place.use("write_file", path="f", content="new")
    assert os.getxattr(tmp_path / "f", "user.colour") == b"red"


async def test_a_symlink_is_written_through_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/f").write_text("old")
    os.symlink("real/f", tmp_path / "link")
    os.symlink("real/new", tmp_path / "dangling")
    async with workplace(tmp_path) as place:
        result = await place.use("write_file", path="link", content="new")
        await place.use("write_file", path="dangling", content="made")
    assert os.readlink(tmp_path / "link") == "real/f"
    assert (tmp_path / "real/f").read_text() == "new"
    assert (tmp_path / "real/new").read_text() == "made"
    assert result.effects.records[0].target == f"{tmp_path}/real/f"


async def test_a_symlink_out_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "victim").write_text("theirs")
    os.symlink("../victim", tmp_path / "root/link")
    os.symlink("../new", tmp_path / "root/dangling")
    async with workplace(tmp_path / "root") as place:
        for name in ("link", "dangling", "../victim", "link/x"):
            assert (await place.refusal("write_file", path=name, content="ours")).startswith(("outside", "wrong_kind"))
    assert sorted(os.listdir(tmp_path)) == ["root", "victim"]
    assert (tmp_path / "victim").read_text() == "theirs"


async def test_other_names_of_a_file_keep_the_old_content_and_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    os.link(tmp_path / "f", tmp_path / "g")
    async with workplace(tmp_path) as place:
        result = await place.use("write_file", path="f", content="new")
    assert "The file had another name (a hard link), which keeps the old content." in words(result)
    assert (tmp_path / "g").read_text() == "old"


async def test_what_is_no_file_is_not_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    async with workplace(tmp_path) as place:
        assert await place.refusal("write_file", path="fifo", content="x") == "wrong_kind: fifo is a named pipe, not a file"
        assert await place.refusal("write_file", path="folder", content="x") == "wrong_kind: folder is a folder, not a file"
        assert await place.refusal("write_file", path=".", content="x") == "wrong_kind: . is a folder, not a file"
        assert (await place.refusal("write_file", path="file/x", content="x")).startswith("wrong_kind: file/x is not a folder")


async def test_a_readable_folder_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "spill").mkdir()
    (tmp_path / "spill/f").write_text("x")
    async with workplace(tmp_path / "work", readable=tmp_path / "spill") as place:
        path = str(tmp_path / "spill/f")
        assert words(await place.use("read_file", path=path)) == "x"
        assert await place.refusal("write_file", path=path, content="y") == f"forbidden: {path} may be read and not written"
        assert (await place.refusal("edit_file", path=path, old_text="x", new_text="y")).startswith("forbidden")


async def test_a_file_without_the_right_to_write_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    os.chmod(tmp_path / "f", 0o444)
    async with workplace(tmp_path) as place:
        message = await place.refusal("write_file", path="f", content="new")
    assert message == "forbidden: f is read-only (mode 0444); change its mode first if it may be changed"
    assert (tmp_path / "f").read_text() == "old"


IN_A_CLOSED_FOLDER = """
import os, pathlib, resource, signal, sys
from toolrunner import Runner
from toolrunner.tools.builtin import builtins
folder = pathlib.Path(sys.argv[1])
with Runner.blocking(builtins(folder)) as runner:
    result = runner.run("write_file", {"path": "closed/f", "content": "new"})
    print(result.outcome, result.effects.state, result.error.message)
"""


def test_a_folder_without_the_right_to_write_is_told_to_a_plain_user(as_plain_user: PlainUser) -> None:
    home = as_plain_user.home
    (home / "closed").mkdir()
    if os.geteuid() == 0:
        os.chown(home / "closed", as_plain_user.uid, as_plain_user.gid)
    os.chmod(home / "closed", 0o500)
    ended = subprocess.run(
        as_plain_user.argv(sys.executable, "-c", IN_A_CLOSED_FOLDER, str(home)),
        **as_plain_user.popen, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert ended.stdout == "failed none closed/f may not be used by this program's user\n", ended.stderr


@pytest.mark.root
async def test_a_full_disk_leaves_the_old_content(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        (disk / "f").write_text("old")
        async with workplace(disk) as place:
            message = await place.refusal("write_file", path="f", content="x" * 200_000)
        assert message == "full: f cannot be written: the disk is full; free some space first"
        assert (disk / "f").read_text() == "old"
        assert os.listdir(disk) == ["f"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


async def test_a_limit_of_file_sizes_leaves_the_old_content(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with workplace(tmp_path) as place:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
        try:
            message = await place.refusal("write_file", path="f", content="x" * 20_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert message == "full: f cannot be written: it is larger than a file may be here"
    assert (tmp_path / "f").read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


async def test_two_writers_of_one_file_are_ordered(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("top\n")
    os.symlink("f", tmp_path / "link")
    async with Runner(builtins(tmp_path)) as runner:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                for number in range(1, 11):
                    edit = {"path": ("f", "link")[number % 2], "old_text": "top\n", "new_text": f"top\n{number}\n"}
                    tasks.start_soon(runner.run, "edit_file", edit)
    assert sorted((tmp_path / "f").read_text().split()) == sorted(["top", *map(str, range(1, 11))])


async def test_calls_of_one_batch_see_what_those_before_them_wrote(tmp_path: Path) -> None:
    calls = [
        ToolCall("write_file", {"path": "f", "content": "one"}),
        ToolCall("read_file", {"path": "f"}),
        ToolCall("edit_file", {"path": "f", "old_text": "one", "new_text": "two"}),
        ToolCall("read_file", {"path": "f"}),
        ToolCall("read_file", {"path": "f"}),
    ]
    async with Runner(builtins(tmp_path)) as runner:
        with anyio.fail_after(10):
            results = await runner.run_batch(calls)
    assert [words(result) for result in results if result.name == "read_file"] == ["one", "two", "two"]


async def test_a_change_by_somebody_else_meanwhile_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_text("old")
    write = atomic._write

    def slow(fd: int, data: bytes) -> None:
        write(fd, data)
        (tmp_path / "f").write_text("theirs")
        (tmp_path / "new").write_text("theirs")

    monkeypatch.setattr(atomic, "_write", slow)
    async with workplace(tmp_path) as place:
        for path in ("f", "new"):
            message = await place.refusal("write_file", path=path, content="ours")
            assert message.startswith(f"changed: {path} was changed by somebody else meanwhile")
            monkeypatch.setattr(atomic, "_write", slow)
    assert [(tmp_path / name).read_text() for name in ("f", "new")] == ["theirs", "theirs"]
    assert leftovers(tmp_path) == []


async def test_a_disk_that_does_not_confirm_the_rename_leaves_the_state_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(directory: int) -> None:
        raise atomic.NotFlushed(5, "Input/output error")

    monkeypatch.setattr(atomic, "flush", broken)
    async with workplace(tmp_path) as place:
        result = await place.use("write_file", path="f", content="new")
    assert (result.outcome, result.effects.state, result.retry) == ("failed", "unknown", "fix_first")
    assert result.error is not None
    assert result.error.message == "f was written, but the disk did not confirm it: Input/output error"


# Leftovers and kills.

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


# Stops.


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


# Undo.


class Undoing:
    """What an undo is given."""

    kind, target, receipt = "file_write", "f", None

    def __init__(self) -> None:
        self.said_not_applied = False

    def not_applied(self) -> None:
        self.said_not_applied = True


def undo(root: Path, before: str | None, after: str) -> Undoing:
    roots = read_roots(root)
    current = (root / "f").read_bytes() if (root / "f").exists() else None
    if before is not None:
        (root / "f").write_text(before)
    elif current is not None:
        (root / "f").unlink()
    with follow(roots, "f") as place:
        old = old_at(roots, place, lambda: None)
    if current is not None:
        (root / "f").write_bytes(current)
    elif before is not None:
        (root / "f").unlink()
    effect = Undoing()
    undo_of(roots, f"{root}/f", old, version_of(after.encode())).fn(effect)  # type: ignore[arg-type]
    return effect


def test_an_undo_puts_the_old_content_back(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("new")
    assert not undo(tmp_path, "old", "new").said_not_applied
    assert (tmp_path / "f").read_text() == "old"


def test_an_undo_of_a_new_file_takes_it_away(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("new")
    undo(tmp_path, None, "new")
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("before", ["old", None])
def test_an_undo_leaves_what_was_changed_again(tmp_path: Path, before: str | None) -> None:
    (tmp_path / "f").write_text("theirs")
    with pytest.raises(ToolError, match="was changed again since"):
        undo(tmp_path, before, "new")
    assert (tmp_path / "f").read_text() == "theirs"


@pytest.mark.parametrize("before", ["old", None])
def test_an_undo_of_what_never_happened_does_nothing(tmp_path: Path, before: str | None) -> None:
    if before is not None:
        (tmp_path / "f").write_text(before)
    assert not undo(tmp_path, before, "new").said_not_applied
    assert (tmp_path / "f").exists() == (before is not None)


# edit_file.

MORE = "give more of the lines around it, or set replace_all"
AGAIN = "read the file again and copy it exactly"
OR = f"or in what follows: {AGAIN}"


@given(st.text("ab\n", max_size=30), st.text("ab\n", min_size=1, max_size=3))
def test_occurrences_and_lines_are_those_of_the_text(text: str, wanted: str) -> None:
    data, part = text.encode(), wanted.encode()
    every = occurrences(data, part, overlapping=True)
    assert every == [at for at in range(len(data)) if data.startswith(part, at)]
    assert len(occurrences(data, part, overlapping=False)) == data.count(part)
    assert lines_of(data, every) == [data[:at].count(b"\n") + 1 for at in every]


async def test_the_only_occurrence_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes("one\r\ntwö\nthree".encode())
    async with workplace(tmp_path) as place:
        result = await place.use("edit_file", path="f", old_text="twö\n", new_text="2\n")
    assert (tmp_path / "f").read_bytes() == b"one\r\n2\nthree"
    assert words(result) == "Replaced 1 occurrence in f (line 2)."
    assert receipts(result)[0]["before"] == digest("one\r\ntwö\nthree")


async def test_all_occurrences_are_replaced_on_request(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("aa\naa aa\n")
    async with workplace(tmp_path) as place:
        result = await place.use("edit_file", path="f", old_text="aa", new_text="b", replace_all=True)
    assert (tmp_path / "f").read_text() == "b\nb b\n"
    assert words(result) == "Replaced 3 occurrences in f (lines 1, 2)."


@pytest.mark.parametrize(
    "content, old_text, message",
    [
        ("x\ny\nx\n", "x", f"ambiguous: old_text occurs 2 times in f (lines 1, 3); {MORE}"),
        ("aaa", "aa", f"ambiguous: old_text occurs 2 times in f (line 1); {MORE}"),
        ("x\n" * 20, "x", f"ambiguous: old_text occurs 20 times in f (lines 1, 2, 3, 4, 5, 6, 7, 8 and 12 more); {MORE}"),
        ("a\r\nb\r\n", "a\nb", "not_found: old_text is not in f; its lines end in CR LF: send \\r\\n"),
        ("a\nb\n", "a\r\nb", "not_found: old_text is not in f; its lines end in LF alone: send \\n"),
        ("x\n  if a:\n", "\tif a:\n", f"not_found: old_text is not in f; line 2 differs from it in whitespace, {OR}"),
        ("x", "y", f"not_found: old_text is not in f; {AGAIN}"),
        ("", "y", f"not_found: old_text is not in f; {AGAIN}"),
    ],
)
async def test_a_text_that_is_not_there_exactly_once_is_refused_with_what_to_do(
    tmp_path: Path, content: str, old_text: str, message: str
) -> None:
    (tmp_path / "f").write_bytes(content.encode())
    async with workplace(tmp_path) as place:
        assert await place.refusal("edit_file", path="f", old_text=old_text, new_text="z") == message
    assert (tmp_path / "f").read_bytes() == content.encode()


async def test_edits_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    (tmp_path / "binary").write_bytes(b"x\xff")
    async with workplace(tmp_path) as place:
        assert (await place.refusal("edit_file", path="f", old_text="x", new_text="x")).startswith("no_change")
        assert (await place.refusal("edit_file", path="nothing", old_text="x", new_text="y")).startswith("not_found")
        assert (await place.refusal("edit_file", path="binary", old_text="x", new_text="y")).startswith("not_text")
        assert (await place.use("edit_file", path="f", old_text="", new_text="y")).code == "INVALID_ARGUMENTS"
