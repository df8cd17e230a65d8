"""Every example of the README is run, in its order, and prints what the README says it prints.

A ```python block whose first line is `# name.py` is a program; the ```text block right behind it is its output, to the letter.
In a ```console block each line behind `$ ` is a command and the lines below it are what it prints, where `…` stands for anything.
The two commands for a fresh machine are run by .ci/run, in clones of their own.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

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


def commands() -> list[tuple[str, str]]:
    """Command and expected output, of every console block, without those that install."""
    found: list[tuple[str, str]] = []
    for block in blocks():
        if block.kind == "console":
            parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
            found += [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]
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


@pytest.mark.processes
@pytest.mark.parametrize("command, expected", commands(), ids=lambda value: value.strip()[:60].replace("/", "_"))
def test_a_command_of_the_readme_prints_what_the_readme_says(command: str, expected: str, tmp_path: Path) -> None:
    for block in programs():
        (tmp_path / name_of(block)).write_text(block.text)
    ended = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert matches(ended.stdout + ended.stderr, expected), ended.stdout + ended.stderr


def matches(actual: str, expected: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, actual.strip(), re.DOTALL) is not None


def test_the_readme_shows_programs_and_commands() -> None:
    assert len(programs()) >= 3
    assert commands()


def test_the_matcher_tells_another_output_apart() -> None:
    assert matches("a 12 b\n", "a … b")
    assert not matches("a 12 c", "a … b")
    assert not matches("a b", "a b c")
