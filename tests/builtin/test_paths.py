"""A path is followed inside the roots only, whatever lies on its way and whoever swaps what meanwhile."""

import contextlib
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from toolrunner.errors import ConfigError, ToolError
from toolrunner.tools.builtin.roots import Roots, read_roots
from toolrunner.tools.builtin.walking import follow, open_file


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """root/ with inner/file, and outside/secret beside it."""
    (tmp_path / "root/inner").mkdir(parents=True)
    (tmp_path / "root/inner/file").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    return tmp_path


def read(roots: Roots, path: str) -> str:
    with follow(roots, path) as place:
        fd = open_file(roots, place)
        with open(fd) as file:
            return file.read()


def refusal(roots: Roots, path: str) -> str:
    with pytest.raises(ToolError) as caught:
        read(roots, path)
    return caught.value.kind


@pytest.mark.parametrize(
    "path",
    ["inner/file", "./inner/file", "inner/../inner//file", "inner/./file", "{root}/inner/file", "{root}/../root/inner/file"],
)
def test_every_spelling_of_a_path_inside_leads_to_the_file(tree: Path, path: str) -> None:
    assert read(read_roots(tree / "root"), path.format(root=tree / "root")) == "inside"


@pytest.mark.parametrize(
    "path",
    ["../outside/secret", "inner/../../outside/secret", "{root}/../outside/secret", "{outside}/secret", "/etc/passwd", "/", ".."],
)
def test_a_path_that_leads_out_is_refused(tree: Path, path: str) -> None:
    assert refusal(read_roots(tree / "root"), path.format(root=tree / "root", outside=tree / "outside")) == "outside"


@pytest.mark.parametrize("target", ["{outside}/secret", "../outside/secret", "inner/../../outside/secret", "/proc/self/cwd"])
def test_a_symlink_that_leads_out_is_refused(tree: Path, target: str) -> None:
    os.symlink(target.format(outside=tree / "outside"), tree / "root/link")
    assert refusal(read_roots(tree / "root"), "link") == "outside"


def test_a_folder_that_is_a_symlink_out_is_refused(tree: Path) -> None:
    os.symlink(tree / "outside", tree / "root/out")
    assert refusal(read_roots(tree / "root"), "out/secret") == "outside"


@pytest.mark.parametrize("target", ["{root}/inner/file", "inner/file", "../root/inner/file", "other"])
def test_a_symlink_that_ends_inside_is_followed(tree: Path, target: str) -> None:
    os.symlink(tree / "root/inner/file", tree / "root/other")
    os.symlink(target.format(root=tree / "root"), tree / "root/link")
    roots = read_roots(tree / "root")
    assert read(roots, "link") == "inside"
    with follow(roots, "link") as place:
        assert place.real == str((tree / "root/inner/file").resolve())


def test_a_symlink_may_lead_from_one_root_into_another(tree: Path) -> None:
    os.symlink(tree / "outside/secret", tree / "root/link")
    roots = read_roots(tree / "root", readable=tree / "outside")
    assert read(roots, "link") == "secret"
    with follow(roots, "link") as place:
        assert not place.writable
    with follow(roots, "inner/file") as place:
        assert place.writable


def test_a_readable_root_inside_a_writable_one_is_not_written_to_by_any_way(tree: Path) -> None:
    roots = read_roots(tree / "root", readable=tree / "root/inner")
    os.symlink("inner", tree / "root/alias")
    for path in ("inner/file", "alias/file", "inner/new", str(tree / "root/inner/file"), "x/../inner/file"):
        (tree / "root/x").mkdir(exist_ok=True)
        with follow(roots, path) as place:
            assert not place.writable


def test_a_root_that_was_named_by_a_symlink_may_be_called_so(tree: Path) -> None:
    os.symlink("root", tree / "alias")
    assert read(read_roots(tree / "alias"), f"{tree}/alias/inner/file") == "inside"


def test_circles_of_symlinks_end(tree: Path) -> None:
    os.symlink("loop", tree / "root/loop")
    os.symlink(tree / "root/b", tree / "root/a")
    os.symlink(tree / "root/a", tree / "root/b")
    roots = read_roots(tree / "root")
    assert refusal(roots, "loop") == "wrong_kind"
    assert refusal(roots, "a") == "wrong_kind"


def test_a_file_is_no_folder_and_a_folder_no_file(tree: Path) -> None:
    roots = read_roots(tree / "root")
    assert refusal(roots, "inner/file/more") == "wrong_kind"
    assert refusal(roots, "inner/file/") == "wrong_kind"
    assert refusal(roots, "inner") == "wrong_kind"
    assert refusal(roots, ".") == "wrong_kind"
    assert refusal(roots, "nothing") == "not_found"
    assert refusal(roots, "nothing/../inner/file") == "not_found"


def test_pipes_sockets_and_devices_are_refused_without_waiting(tree: Path) -> None:
    os.mkfifo(tree / "root/fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        with contextlib.chdir(tree / "root"):  # the name of a socket has room for 107 bytes only
            listener.bind("socket")
        roots = read_roots(tree / "root", readable="/dev")
        assert [refusal(roots, path) for path in ("fifo", "socket", "/dev/null", "/dev/zero")] == ["wrong_kind"] * 4


def test_a_file_that_became_a_pipe_since_the_look_is_refused_without_waiting(tree: Path) -> None:
    roots = read_roots(tree / "root")
    with follow(roots, "inner/file") as place:
        os.unlink(tree / "root/inner/file")
        os.mkfifo(tree / "root/inner/file")
        with pytest.raises(ToolError, match="is a named pipe"):
            open_file(roots, place)


def test_a_file_that_became_a_symlink_since_the_look_is_refused(tree: Path) -> None:
    roots = read_roots(tree / "root")
    with follow(roots, "inner/file") as place:
        os.unlink(tree / "root/inner/file")
        os.symlink(tree / "outside/secret", tree / "root/inner/file")
        with pytest.raises(ToolError, match="was replaced meanwhile"):
            open_file(roots, place)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc here")
@pytest.mark.parametrize("path", ["/proc/self/environ", "/proc/self/mem", "/proc/self/fd/0", "/proc/self/root/etc/passwd"])
def test_what_the_kernel_shows_of_this_very_program_is_no_file(path: str) -> None:
    roots = read_roots("/")
    with follow(roots, "/etc/passwd") as place:
        assert stat.S_ISREG(place.found.st_mode if place.found else 0)
    try:
        text = read(roots, path)
    except ToolError:
        return
    # The magic link /proc/self/root is text for us: it leads to /, by the ordinary way.
    assert path.endswith("passwd")
    assert text == Path("/etc/passwd").read_text()


def test_nothing_outside_is_read_while_a_folder_is_swapped_for_a_symlink(tree: Path) -> None:
    (tree / "outside/file").write_text("secret")
    os.symlink(tree / "outside", tree / "root/evil")
    roots, over = read_roots(tree / "root"), threading.Event()
    inner, evil, spare = (str(tree / "root" / name) for name in ("inner", "evil", "spare"))

    def swap() -> None:
        while not over.is_set():
            os.rename(inner, spare)
            os.rename(evil, inner)
            os.rename(inner, evil)
            os.rename(spare, inner)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen: dict[str, int] = {}
        for _ in range(1_000):
            try:
                found = read(roots, "inner/file")
            except ToolError as error:
                found = error.kind
            seen[found] = seen.get(found, 0) + 1
    finally:
        over.set()
        thread.join()
    assert "secret" not in seen
    assert seen.keys() <= {"inside", "outside", "not_found", "wrong_kind"}


def test_a_name_that_is_no_utf8_is_found_and_shown_as_escapes(tree: Path) -> None:
    name = os.fsdecode(b"bad\xff")
    (tree / "root" / name).write_text("x")
    roots = read_roots(tree / "root")
    assert read(roots, name) == "x"
    with follow(roots, name) as place:
        assert roots.shown(place.real) == "bad\\xff"


def test_no_descriptor_is_left_after_any_way(tree: Path) -> None:
    os.symlink(tree / "outside", tree / "root/out")
    os.symlink("loop", tree / "root/loop")
    roots = read_roots(tree / "root")
    before = os.listdir("/dev/fd")
    for path in ("inner/file", "out/secret", "loop", "nothing", "inner/../../x", "inner/file/x"):
        try:
            read(roots, path)
        except ToolError:
            pass
    assert os.listdir("/dev/fd") == before


@pytest.mark.parametrize("bad", [[], "", 5, [b"x"], "not/there", __file__])
def test_roots_that_are_no_folders_are_refused(bad: object) -> None:
    with pytest.raises((ConfigError, TypeError)):
        read_roots(bad)  # type: ignore[arg-type]


def test_two_spellings_of_a_file_have_one_lock(tree: Path) -> None:
    os.symlink("inner/file", tree / "root/link")
    roots = read_roots(tree / "root")
    assert roots.key("link") == roots.key("inner/file") == roots.key(f"{tree}/root/inner/../inner/file")
