"""The same by the kernel's word: strace sees fdatasync return before anybody is told. (Without it: test_durability.py.)"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = """
import os, sys, anyio
from toolrunner import Runner, SqliteJournal, ToolContext, tool
@tool
async def act(ctx: ToolContext[None], number: int) -> int:
    "Act."
    os.write(told, b"entered %d" % number)
    async with ctx.effect("test", "thing"):
        os.write(told, b"planned %d" % number)
    return number
async def main():
    async with Runner([act], journal=SqliteJournal.open(sys.argv[1])) as runner:
        for number in range(5):
            await runner.run("act", {"number": number})
            os.write(told, b"settled %d" % number)
told = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY)
anyio.run(main, backend=sys.argv[3])
"""
TRACED = "trace=pwrite64,write,fdatasync,fsync"
CALL = re.compile(r"(\d+) +(\w+)\(\d+<(.*?)>(.*)")
RESUMED = re.compile(r"(\d+) +<\.\.\. (?:fdatasync|fsync) resumed>")


def steps(log: Path) -> Iterator[tuple[str, str]]:
    """(write, text) and (flush, "") of the -wal file, a flush when it has returned; (told, text) of the program's own file."""
    flushing = set[str]()  # threads in a flush that has not returned
    for line in log.read_text(errors="replace").splitlines():
        if (resumed := RESUMED.match(line)) is not None and resumed[1] in flushing:
            flushing.discard(resumed[1])
            yield "flush", ""
        if (found := CALL.match(line)) is None:
            continue
        thread, call, file, rest = found.groups()
        if file.endswith("told"):
            yield "told", rest.split('"')[1]
        elif file.endswith("journal.db-wal") and call == "pwrite64":
            yield "write", rest
        elif file.endswith("journal.db-wal") and "<unfinished" in rest:
            flushing.add(thread)
        elif file.endswith("journal.db-wal"):
            yield "flush", ""


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_bodies_acts_and_results_come_after_the_flush_of_their_records(tmp_path: Path, backend: str) -> None:
    log, told = tmp_path / "trace", tmp_path / "told"
    strace = ["strace", "-f", "-y", "-s", "100000", "-e", TRACED, "-o", str(log)]
    program = [sys.executable, "-c", PROGRAM, str(tmp_path / "journal.db"), str(told), backend]
    done = subprocess.run([*strace, *program], capture_output=True, text=True, check=False, env=os.environ)
    if "ptrace" in done.stderr.lower() and done.returncode != 0:
        pytest.skip("this place does not let strace trace")
    assert done.returncode == 0, done.stderr
    unflushed = ""
    seen: list[str] = []
    for what, text in steps(log):
        if what == "write":
            unflushed += text
        elif what == "flush":
            unflushed = ""
        else:
            word, number = text.split()
            seen.append(word)
            kind = {"entered": "call/dispatched", "planned": "effect/planned", "settled": "call/ended"}[word]
            assert kind not in unflushed, f"{word} {number} before {kind} was flushed"
    assert seen == ["entered", "planned", "settled"] * 5
    everything = log.read_text(errors="replace")
    assert all(kind in everything for kind in ("call/dispatched", "effect/planned", "call/ended")), "else nothing was looked at"
