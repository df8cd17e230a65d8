"""edit_file: the text that occurs exactly once is replaced, or all of them on request, and nothing that is not meant."""

from pathlib import Path

import pytest
from builtin.workplace import digest, receipts, words, workplace
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.tools.builtin.edit_file import lines_of, occurrences

pytestmark = pytest.mark.anyio

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
