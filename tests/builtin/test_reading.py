"""read_file shows a text exactly, in pieces that fit together, and stops at once."""

import os
from pathlib import Path

import anyio
import pytest
from builtin.workplace import BOUND, words, workplace
from hypothesis import given
from hypothesis import strategies as st

from toolrunner import AbortController, Runner
from toolrunner.errors import ToolError
from toolrunner.tools.builtin import builtins
from toolrunner.tools.builtin.reading import CHUNK, by_bytes, by_lines

TEXTS = st.text(st.sampled_from("a\nb\rä€😀"), max_size=60)


def pipe_free_file(data: bytes) -> int:
    fd = os.memfd_create("text")
    os.write(fd, data)
    return fd


def never() -> None:
    """Nobody stops the reading."""


@given(TEXTS, st.integers(1, 12), st.integers(1, 8), st.integers(4, 40))
def test_lines_are_those_of_the_file(text: str, first: int, count: int, most: int) -> None:
    data = text.encode()
    # Only LF ends a line, as for every tool that counts them.
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    lines = lines if lines[-1] else lines[:-1]
    fd = pipe_free_file(data)
    try:
        if first > max(1, len(lines)):
            with pytest.raises(ToolError, match=f"so there is no line {first}"):
                by_lines(fd, "f", first, count, most, never)
            return
        piece = by_lines(fd, "f", first, count, most, never)
    finally:
        os.close(fd)
    rest = b"".join(lines[first - 1 :])
    assert rest.startswith(piece.text.encode())
    assert len(piece.text.encode()) <= most
    if piece.cut_at is None:
        shown = lines[first - 1 : piece.last]
        assert piece.text.encode() == b"".join(shown)
        assert piece.last - first + 1 <= count
        assert piece.next == (piece.last + 1 if piece.last < len(lines) else None)
        assert piece.total == len(lines)
    else:
        assert piece.cut_at == len(b"".join(lines[: first - 1])) + len(piece.text.encode())
        assert len(lines[first - 1]) > most


@given(TEXTS, st.integers(4, 9))
def test_pieces_of_bytes_make_up_the_file(text: str, most: int) -> None:
    fd = pipe_free_file(text.encode())
    try:
        found, offset = "", 0
        while True:
            piece = by_bytes(fd, "f", offset, most, never)
            assert piece.first == offset
            found += piece.text
            if piece.next is None:
                break
            assert piece.next > offset
            offset = piece.next
    finally:
        os.close(fd)
    assert found == text


@pytest.mark.parametrize("lines", [CHUNK // 8 - 1, CHUNK // 8, CHUNK // 8 + 1, CHUNK // 4])
def test_a_line_at_the_border_of_a_chunk_is_found(lines: int) -> None:
    fd = pipe_free_file(b"1234567\n" * lines + b"last")
    try:
        assert by_lines(fd, "f", lines + 1, 1, 100, never).text == "last"
        assert by_lines(fd, "f", lines, 2, 100, never).text == "1234567\nlast"
        with pytest.raises(ToolError, match=rf"f has {lines + 1} lines, so there is no line {lines + 2}"):
            by_lines(fd, "f", lines + 2, 1, 100, never)
    finally:
        os.close(fd)


@pytest.mark.anyio
async def test_a_whole_file_is_shown_to_the_letter(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    async with workplace(tmp_path) as place:
        result = await place.use("read_file", path="a.txt")
        assert words(result) == "\ufeffone\r\ntwo"
        assert (result.effects.state, result.effects.evidence) == ("none", "declared")


@pytest.mark.anyio
async def test_a_long_file_is_shown_from_its_beginning_and_says_how_to_read_on(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 5_001)))
    async with workplace(tmp_path) as place:
        first = await place.use("read_file", path="a.txt")
        assert words(first).endswith("line 2000\n\n[a.txt: lines 1 to 2000 of 5000; read on with offset=2001]")
        last = await place.use("read_file", path="a.txt", offset=5_000)
        assert words(last) == "line 5000\n\n[a.txt: lines 5000 to 5000 of 5000, the end of the file]"
        assert await place.refusal("read_file", path="a.txt", offset=5_001) == (
            "bad_offset: a.txt has 5000 lines, so there is no line 5001"
        )


@pytest.mark.anyio
async def test_no_result_shows_more_than_its_share(tmp_path: Path) -> None:
    (tmp_path / "wide.txt").write_text(("ä" * 400 + "\n") * 100)
    (tmp_path / "one.txt").write_text("ä" * 5_000)
    async with workplace(tmp_path, shown=2_000) as place:
        wide = await place.use("read_file", path="wide.txt")
        assert words(wide).startswith(("ä" * 400 + "\n") * 2 + "\n[wide.txt: lines 1 to 2 of 100; read on with offset=3]")
        one = await place.use("read_file", path="one.txt")
        assert words(one).endswith('this is its beginning; read on with unit="bytes", offset=2000]')
        more = await place.use("read_file", path="one.txt", unit="bytes", offset=2_000)
        assert words(more) == "ä" * 1_000 + "\n[one.txt: bytes 2000 to 4000 of 10000; read on with offset=4000]"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "data, why",
    [
        (b"caf\xe9", "byte 3 is 0xe9"),
        (b"a\0b", "byte 1 is a NUL"),
        (b"\xff\xfea\0", "it looks like UTF-16"),
        (b"\x89PNG\r\n\x1a\n\0", "it looks like a PNG image"),
        (b"\x7fELF\0", "it looks like a program"),
    ],
)
async def test_what_is_no_text_is_refused_and_why(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "f").write_bytes(data)
    async with workplace(tmp_path) as place:
        assert f"not_text: f is not UTF-8 text ({why})" in await place.refusal("read_file", path="f")


@pytest.mark.anyio
async def test_empty_files_and_wrong_offsets_are_told(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "one").write_text("x")
    async with workplace(tmp_path) as place:
        assert words(await place.use("read_file", path="empty")) == "[empty: the file is empty]"
        assert await place.refusal("read_file", path="one", offset=0) == "bad_offset: offset is 0, but lines count from 1"
        assert await place.refusal("read_file", path="one", offset=2) == "bad_offset: one has 1 line, so there is no line 2"
        invalid = await place.use("read_file", path="a\0b")
        assert (invalid.code, invalid.started) == ("INVALID_ARGUMENTS", False)


@pytest.mark.anyio
async def test_a_file_of_a_terabyte_is_read_at_its_beginning_and_a_stop_ends_the_way_to_a_late_line(tmp_path: Path) -> None:
    with open(tmp_path / "huge", "wb") as file:
        file.write(b"first\n")
        try:
            file.truncate(1 << 40)
        except OSError:
            file.truncate(1 << 34)  # as much as this file system can count
    controller = AbortController()
    async with Runner(builtins(tmp_path)) as runner, anyio.create_task_group() as tasks:
        with anyio.fail_after(BOUND):
            first = await runner.run("read_file", {"path": "huge", "limit": 1})
            assert words(first).startswith("first\n\n[huge: lines 1 to 1 (the file has ")

            async def stop() -> None:
                controller.abort()

            tasks.start_soon(stop)
            late = await runner.run("read_file", {"path": "huge", "offset": 1 << 30}, signal=controller.signal)
    assert late.outcome == "aborted"
    assert late.effects.state == "none"


@pytest.mark.anyio
async def test_a_file_that_is_only_sparse_zeros_far_in_is_bounded_without_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolrunner.tools.builtin.reading.LOOKED_THROUGH", 4 * CHUNK)
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(64 * CHUNK)
    async with workplace(tmp_path) as place:
        assert "lies behind" in await place.refusal("read_file", path="huge", offset=2)


@pytest.mark.anyio
async def test_a_file_that_grows_while_it_is_read_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log").write_text("one\n")

    def grow(*arguments: object) -> object:
        piece = by_lines(*arguments)  # type: ignore[arg-type]
        with open(tmp_path / "log", "a") as file:
            file.write("two\n")
        return piece

    monkeypatch.setattr("toolrunner.tools.builtin.read_file.by_lines", grow)
    async with workplace(tmp_path) as place:
        assert words(await place.use("read_file", path="log")) == (
            "one\n\n[log: it was changed while it was read; read it again]"
        )
