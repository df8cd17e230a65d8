"""A program whose runs are killed at a chosen write of the journal. Started once; each run is a fork of it and takes moments.

Reads one JSON object per line (`Crash` in crashes.py) and answers with the wait status of the run. Bodies leave the truth in
`truth`, each line flushed to disk before the body goes on: no journal has a part in it. Nothing in here belongs to the product:
the kill is put around `SqliteJournal.append` of this very process.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from toolrunner import Runner, SqliteJournal, ToolCall, ToolContext, ToolError, Toolset, tool
from toolrunner.journal import JournalReader

TRUTH = "truth"
JOURNAL = "journal.db"


class Truth:
    """What really happened, line by line: a verb, the run id, and the key or target."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TRUTH

    def tell(self, *words: str) -> None:
        file = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        try:
            os.write(file, (" ".join(words) + "\n").encode())
            os.fsync(file)
        finally:
            os.close(file)


def tools(truth: Truth) -> Toolset:
    """One body of each kind; `name` is the call's own, the same in each round."""

    @tool(parallel_safe=True)
    async def write(name: str, ctx: ToolContext[Any]) -> str:
        truth.tell("entered", ctx.run_id, name)
        async with ctx.effect("write", name) as effect:
            await anyio.lowlevel.checkpoint()
            truth.tell("made", ctx.run_id, name)
            effect.receipt = name
        truth.tell("over", ctx.run_id, name)
        return name

    @tool(parallel_safe=True)
    async def quiet(name: str, ctx: ToolContext[Any]) -> str:
        truth.tell("entered", ctx.run_id, name)
        truth.tell("made", ctx.run_id, name)
        truth.tell("over", ctx.run_id, name)
        return name

    @tool(parallel_safe=True)
    async def fails(name: str, ctx: ToolContext[Any]) -> str:
        truth.tell("entered", ctx.run_id, name)
        async with ctx.effect("write", name):
            truth.tell("made", ctx.run_id, name)
        raise ToolError("after its change")

    @tool(parallel_safe=True)
    async def parent(name: str, ctx: ToolContext[Any]) -> str:
        truth.tell("entered", ctx.run_id, name)
        await ctx.run("write", {"name": f"{name}/child"})
        truth.tell("over", ctx.run_id, name)
        return name

    @tool(parallel_safe=True)
    def threaded(name: str, ctx: ToolContext[Any]) -> str:
        truth.tell("entered", ctx.run_id, name)
        with ctx.effect("write", name):
            truth.tell("made", ctx.run_id, name)
        truth.tell("over", ctx.run_id, name)
        return name

    return Toolset([write, quiet, fails, parent, threaded])


CALLS = tuple(
    ToolCall(kind, {"name": kind}, call_id=kind, idempotency_key=f"key of {kind}")
    for kind in ("write", "quiet", "fails", "parent", "threaded")
)


def kill_at(number: int, mode: str, path: Path) -> None:
    """Have this process killed at its `number`-th append: `before` it is taken, when it is `handed` over, or `written`."""
    append, count = SqliteJournal.append, 0

    def killing(self: SqliteJournal, *records: Any) -> Any:
        nonlocal count
        count += 1
        if count != number:
            return append(self, *records)
        if mode == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        pending = append(self, *records)
        if mode == "written" and pending is not None:
            with JournalReader(path) as reader:
                while reader.last_seq() < pending.seq:
                    pass
        os.kill(os.getpid(), signal.SIGKILL)
        return pending

    SqliteJournal.append = killing  # type: ignore[method-assign]


def kill_after(seconds: float) -> None:
    """Have this process killed at a moment that has nothing to do with its writes."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True
    timer.start()


async def run(folder: Path) -> None:
    async with Runner(tools(Truth(folder)), journal=SqliteJournal.open(folder / JOURNAL)) as runner:
        with anyio.fail_after(30):
            await runner.run_batch(CALLS)


def main() -> None:
    for line in sys.stdin:
        crash = json.loads(line)
        pid = os.fork()
        if pid == 0:
            try:
                folder = Path(crash["folder"])
                if crash["mode"] == "moment":
                    kill_after(crash["at"])
                else:
                    kill_at(crash["at"], crash["mode"], folder / JOURNAL)
                anyio.run(run, folder, backend=crash["backend"])
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
