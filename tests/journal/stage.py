"""What the tests of the journal share: records, a runner's tools, a look at what is in a file, a process that opens one."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

from toolrunner import ToolContext, tool
from toolrunner.journal import JournalReader, Place
from toolrunner.records import CallDecided, CallRecorded, Record

TESTS = Path(__file__).parent.parent


def recorded(number: int, **fields: Any) -> CallRecorded:
    return CallRecorded(run_id=f"run-{number}", name="write", arguments={"number": number}, **fields)


def decided(number: int) -> CallDecided:
    return CallDecided(run_id=f"run-{number}", decision="allow", by="no policy")


def kept(path: Path) -> list[Any]:
    """All records of a journal."""
    with JournalReader(path) as reader:
        return [entry.record for entry in reader]


def types(path: Path) -> list[str]:
    return [record.type for record in kept(path)]


def numbers(path: Path) -> list[int]:
    return [record.seq for record in kept(path)]


def without_seq(record: Any) -> Record:
    object.__setattr__(record, "seq", 0)
    return record  # type: ignore[no-any-return]


@tool
async def write(ctx: ToolContext[None], number: int) -> str:
    """Change something."""
    async with ctx.effect("test", f"thing {number}") as effect:
        effect.receipt = "done"
    return str(number)


@tool(read_only=True)
async def look(number: int) -> str:
    """Change nothing."""
    return str(number)


_WRITES = """
import sys, anyio
from journal.stage import decided, recorded
from toolrunner import SqliteJournal
async def main():
    journal = SqliteJournal.open(sys.argv[1])
    number = 0
    while True:
        number += 1
        journal.append(recorded(number))
        await journal.append(decided(number))
        print(2 * number, flush=True)
anyio.run(main, backend=sys.argv[2])
"""


class KillableWriter:
    """Another process that owns a journal, writes without end, and says which record was acknowledged."""

    def __init__(self, path: Path, backend: str) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
        self._child = subprocess.Popen(
            [sys.executable, "-c", _WRITES, str(path), backend], stdout=subprocess.PIPE, env=environment
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.wait()
        assert self._child.stdout is not None
        self._child.stdout.close()

    def kill_after(self, lines: int, seconds: float = 0) -> int:
        """Kill it after so many acknowledgements and `seconds` more; returns the last number that was acknowledged."""
        assert self._child.stdout is not None
        last = 0
        for _ in range(lines):
            last = int(self._child.stdout.readline())
        time.sleep(seconds)  # the moment is to be any, so no event is waited for
        self._child.kill()
        rest = self._child.stdout.read().split(b"\n")[:-1]  # a line that was cut says nothing
        return int(rest[-1]) if rest else last


CHILD = """
import sys
from toolrunner import SqliteJournal
from toolrunner.errors import JournalError
try:
    journal = SqliteJournal.open(sys.argv[1])
except JournalError as error:
    print(type(error).__name__, error)
else:
    print("opened", flush=True)
    sys.stdin.read()
    journal.close()
"""
"""A program that opens a journal, or says why it cannot, and owns it until its input ends."""


def journal_place(folder: Path) -> Place:
    with JournalReader(folder) as reader:
        return reader.place
