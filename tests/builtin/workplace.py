"""What the tests of the built-in tools share: a runner over a folder, the words of its results, and what its writes leave."""

import hashlib
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from toolrunner import Runner, ToolResult
from toolrunner.facts import Text
from toolrunner.tools.builtin import atomic, builtins

BOUND = 10.0
"""Seconds for one call at the most, processes included, on a busy machine."""


class Workplace:
    """A runner with the built-in tools for one folder."""

    def __init__(self, runner: Runner, root: Path) -> None:
        self.runner, self.root = runner, root

    async def use(self, name: str, **arguments: Any) -> ToolResult:
        with anyio.fail_after(BOUND):
            return await self.runner.run(name, arguments)

    async def refusal(self, name: str, **arguments: Any) -> str:
        """The error of a call that must fail, with its kind in front."""
        result = await self.use(name, **arguments)
        assert result.outcome == "failed", result.summary()
        assert result.error is not None
        assert result.effects.state == "none"
        return f"{result.error.kind}: {result.error.message}"


@asynccontextmanager
async def workplace(root: Path, **settings: Any) -> AsyncIterator[Workplace]:
    async with Runner(builtins(root, **settings)) as runner:
        yield Workplace(runner, root)


def words(result: ToolResult) -> str:
    """What the tool said, to the letter."""
    return "\n".join(part.text for part in result.content if isinstance(part, Text))


def digest(text: str) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(text.encode()).hexdigest(), "size": len(text.encode())}


def receipts(result: ToolResult) -> list[Any]:
    return [json.loads(record.receipt) for record in result.effects.records if record.receipt]


def leftovers(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if atomic.TEMPORARY.fullmatch(name)]
