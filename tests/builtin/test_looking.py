"""list_dir and search: bounded, sorted, inside the roots, and the same whichever program does the search."""

import os
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest
from builtin.workplace import BOUND, words, workplace

from toolrunner import AbortController, Runner
from toolrunner.errors import ToolError
from toolrunner.records import JobEnded, JobStarted, Record
from toolrunner.tools.builtin import builtins, finding
from toolrunner.tools.builtin.patterns import check_glob, check_pattern

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
each_program = pytest.mark.parametrize(
    "ripgrep", [pytest.param("rg", marks=needs_ripgrep, id="ripgrep"), pytest.param(None, id="own")]
)


async def test_a_folder_is_listed_sorted_with_what_each_entry_is(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("12345")
    (tmp_path / "a").mkdir()
    os.symlink("b.txt", tmp_path / "link")
    os.symlink("/etc", tmp_path / "out")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "new\nline").touch()
    (tmp_path / os.fsdecode(b"bad\xff")).touch()
    async with workplace(tmp_path) as place:
        result = await place.use("list_dir")
        assert words(result).split("\n") == [
            "a/",
            "b.txt (5)",
            "bad\\xff (0)",
            "link -> b.txt",
            "new\\nline (0)",
            "out -> /etc",
            "pipe (a named pipe)",
        ]
        assert words(await place.use("list_dir", path="a")) == "[a is empty]"
        assert (await place.refusal("list_dir", path="b.txt")) == "wrong_kind: b.txt is a file, not a folder"
        assert (await place.refusal("list_dir", path="out")).startswith("outside")
        assert (await place.refusal("list_dir", path="nothing")).startswith("not_found")


async def test_a_long_list_is_cut_and_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1_050):
        (tmp_path / f"{number:04}").touch()
    async with workplace(tmp_path) as place:
        assert words(await place.use("list_dir")).endswith("0999 (0)\n[.: entries 1 to 1000 of 1050; go on with offset=1000]")
        assert words(await place.use("list_dir", offset=1_049)) == "1049 (0)"
        monkeypatch.setattr("toolrunner.tools.builtin.list_dir.MOST_READ", 100)
        assert words(await place.use("list_dir")).endswith("[.: entries 1 to 100 of more than 100 (an arbitrary part is listed)]")


def plant(root: Path) -> None:
    """A tree with everything that a search must find or leave out."""
    for folder in ("src/deep", ".git", ".hidden", "node_modules"):
        (root / folder).mkdir(parents=True)
    (root / "src/a.py").write_text("import os\nneedle = 1\r\nprint(needle)\n")
    (root / "src/deep/b.ts").write_text("// Needle\nneedle\n" + "x" * 1_000 + "needle\n")
    (root / "src/utf8.txt").write_text("die Nädel needle ü\n")
    (root / "src/latin1.txt").write_bytes(b"caf\xe9 needle\n")
    (root / "src/no-end.txt").write_text("one\nneedle")
    (root / "src/binary").write_bytes(b"needle\n\0")
    (root / "src/late-binary").write_bytes(b"needle\n" + b"x" * 300_000 + b"\n\0\n")
    (root / "src/utf16.txt").write_bytes("needle\n".encode("utf-16"))
    for skipped in (".git/config", "node_modules/m.js"):
        (root / skipped).write_text("needle\n")
    (root / ".hidden/h.py").write_text("needle\n")
    (root / ".gitignore").write_text("src\n")
    (root.parent / "secret").write_text("needle\n")
    os.symlink(root.parent / "secret", root / "src/link")
    os.symlink("..", root / "src/circle")
    os.mkfifo(root / "src/pipe")


SEARCHES: list[dict[str, Any]] = [
    {"pattern": "needle"},
    {"pattern": "needle", "ignore_case": True},
    {"pattern": "^needle$"},
    {"pattern": "^needle"},
    {"pattern": r"print\(\w+\)"},
    {"pattern": "print(", "literal": True},
    {"pattern": "needle", "glob": "*.py"},
    {"pattern": "needle", "glob": "*.{ts,py}"},
    {"pattern": "needle", "glob": "?.py"},
    {"pattern": "needle", "path": "src/a.py"},
    {"pattern": "needle", "path": "src/deep"},
    {"pattern": "needle", "path": ".git"},
    {"pattern": "n.+dle|caf.", "limit": 2},
    {"pattern": "ä"},
    {"pattern": "$", "glob": "a.py"},
    {"pattern": "x*", "path": "src/a.py"},
    {"pattern": "-e", "literal": True},
    {"pattern": "nowhere"},
]


@needs_ripgrep
@pytest.mark.parametrize("search", SEARCHES, ids=str)
async def test_both_programs_find_the_same(tmp_path: Path, search: dict[str, Any]) -> None:
    (tmp_path / "root").mkdir()
    plant(tmp_path / "root")
    found = []
    for ripgrep in ("rg", None):
        async with workplace(tmp_path / "root", ripgrep=ripgrep) as place:
            result = await place.use("search", **search)
            assert result.outcome == "succeeded", result.error
            found.append(result.value)
    assert found[0] == found[1]
    assert bool(found[0]["matches"]) == (search["pattern"] not in ("nowhere", "-e"))  # type: ignore[call-overload,index]


@each_program
async def test_matches_are_shown_with_path_and_line_and_nothing_from_outside(tmp_path: Path, ripgrep: str | None) -> None:
    (tmp_path / "root").mkdir()
    plant(tmp_path / "root")
    async with workplace(tmp_path / "root", ripgrep=ripgrep) as place:
        assert words(await place.use("search", pattern="needle")).split("\n") == [
            ".hidden/h.py:1: needle",
            "src/a.py:2: needle = 1",
            "src/a.py:3: print(needle)",
            "src/deep/b.ts:2: needle",
            "src/deep/b.ts:3: " + "x" * 300 + " [...]",
            "src/latin1.txt:1: caf\N{REPLACEMENT CHARACTER} needle",
            "src/no-end.txt:2: needle",
            "src/utf8.txt:1: die Nädel needle ü",
        ]
        result = await place.use("search", pattern="needle", limit=2)
        assert words(result).endswith("more matches are not shown; narrow pattern, path or glob]")
        assert (result.effects.state, result.still_running) == ("none", ())


@each_program
async def test_what_a_search_shows_is_bounded(tmp_path: Path, ripgrep: str | None) -> None:
    (tmp_path / "f").write_text(("needle " + "y" * 200 + "\n") * 3_000)
    async with workplace(tmp_path, ripgrep=ripgrep, shown=2_000) as place:
        result = await place.use("search", pattern="needle", limit=1_000)
    assert len(words(result)) < 2_200
    assert words(result).endswith("[991 more matches are not shown; narrow pattern, path or glob]")


async def test_a_regular_expression_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "LONGEST", 0.5)
    (tmp_path / "f").write_text("a" * 60 + "!\n")
    async with workplace(tmp_path, ripgrep=None) as place:
        result = await place.use("search", pattern="(a+)+$")
    assert "[no matches; it took longer than 0.5 s and was ended; ask for less]" in words(result)
    assert result.still_running == ()


async def test_a_search_that_is_stopped_ends_its_process_at_once(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a" * 60 + "!\n")
    controller = AbortController()
    records: list[Record] = []

    def look(record: Record) -> None:
        records.append(record)
        if isinstance(record, JobStarted):
            controller.abort()

    async with Runner(builtins(tmp_path, ripgrep=None), kill_after=60) as runner:
        runner.on_record(look)
        with anyio.fail_after(BOUND):
            result = await runner.run("search", {"pattern": "(a+)+$"}, signal=controller.signal)
        assert (result.outcome, result.effects.state, result.still_running) == ("aborted", "none", ())
        assert runner.jobs.list() == ()
    assert all(one.still_running == () for one in records if isinstance(one, JobEnded))


@each_program
async def test_a_file_that_is_swapped_for_a_symlink_after_the_search_shows_nothing(
    tmp_path: Path, ripgrep: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "f").write_text("needle\n")
    (tmp_path / "secret").write_text("needle and password\n")
    found = finding._found

    def swap(job: Any) -> Any:
        os.unlink(root / "f")
        os.symlink("../secret", root / "f")
        return found(job)

    monkeypatch.setattr(finding, "_found", swap)
    async with workplace(root, ripgrep=ripgrep) as place:
        result = await place.use("search", pattern="needle")
    assert words(result) == "[no matches]"


ONE_ENGINE_ONLY = ["(?=a)", "(?<!a)b", r"(a)\1", "a*+", "a++", r"\p{L}", r"\Z", r"\<a", "[[:alpha:]]", "[a&&b]", "a{"]
BROKEN = ["(", "[", "*", "a\nb", "\\"]


@pytest.mark.parametrize("pattern", [*ONE_ENGINE_ONLY, *BROKEN])
def test_what_only_one_engine_understands_is_refused(pattern: str) -> None:
    with pytest.raises(ToolError) as caught:
        check_pattern(pattern)
    assert caught.value.kind == "bad_pattern"


@pytest.mark.parametrize(
    "pattern", ["a|b", r"\d+\.\w", "[^]a-z]+", "[]]", "(?:a)(?P<x>b)", "(?i)a", "a{2,3}?", r"\x41\[\{", "a+?", "[*+]+"]
)
def test_what_both_understand_is_taken(pattern: str) -> None:
    check_pattern(pattern)


@pytest.mark.parametrize("glob", ["a/b", "!a", "{a", "[a", "{a,{b}}", "a\\b"])
def test_a_glob_that_is_no_pattern_of_a_name_is_refused(glob: str) -> None:
    with pytest.raises(ToolError) as caught:
        check_glob(glob)
    assert caught.value.kind == "bad_glob"


@each_program
async def test_a_search_of_a_place_that_is_none_is_refused(tmp_path: Path, ripgrep: str | None) -> None:
    os.mkfifo(tmp_path / "pipe")
    async with workplace(tmp_path, ripgrep=ripgrep) as place:
        assert (await place.refusal("search", pattern="x", path="nothing")).startswith("not_found")
        assert (await place.refusal("search", pattern="x", path="..")).startswith("outside")
        assert (await place.refusal("search", pattern="x", path="pipe")).startswith("wrong_kind")
        assert (await place.refusal("search", pattern="(?=x)")).startswith("bad_pattern")
