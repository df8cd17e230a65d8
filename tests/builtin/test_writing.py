"""write_file: the old content or the new one, inside the roots, recorded with what was there before."""

import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from builtin.workplace import digest, leftovers, receipts, words, workplace
from plain_user import PlainUser

from toolrunner import Runner, ToolCall
from toolrunner.tools.builtin import atomic, builtins

pytestmark = pytest.mark.anyio


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
