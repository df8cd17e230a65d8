"""A command that leaves a job, and what a runner puts on record of its jobs."""

from collections.abc import Callable, Sequence

import anyio
from process.shapes import sh

from toolrunner import Runner
from toolrunner.process import Leftovers
from toolrunner.records import Record
from toolrunner.tools import Command, command_tool


@command_tool(destructive=True)
def leave(script: str) -> Command:
    """Run a script and keep what it leaves."""
    return Command(sh(script), leftovers=Leftovers.KEEP)


def seen(runner: Runner) -> list[Record]:
    records: list[Record] = []
    runner.on_record(records.append)
    return records


def of_jobs(records: Sequence[Record]) -> list[str]:
    return [record.type for record in records if record.type.startswith("job/")]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what a job prints is announced to nobody here
        await anyio.sleep(0.005)
