"""What the tests of the journal share: records to write, a runner's tools, a look at what is in a file."""

from pathlib import Path
from typing import Any

from toolrunner import ToolContext, tool
from toolrunner.journal import JournalReader
from toolrunner.records import CallDecided, CallRecorded, Record


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
