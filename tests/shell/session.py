"""A runner with a persistent shell in it, and what its results say."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from toolrunner import Runner, ToolCall, ToolResult
from toolrunner.facts import NoteKind
from toolrunner.results import Outcome
from toolrunner.tools import AnyTool, persistent_shell

BOUND = 30.0
"""Seconds for a test; milliseconds on an idle machine."""

PROGRAMS = pytest.mark.parametrize("program", ["/bin/sh", "/bin/bash"])


class Session:
    """One runner with one shell."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    async def __call__(self, command: str, **more: Any) -> ToolResult:
        return await self.runner.run(ToolCall("shell", {"command": command}, **more))

    async def said(self, command: str) -> str:
        """Run a command that succeeds, and return its output."""
        result = await self(command)
        assert result.outcome is Outcome.SUCCEEDED, result.summary()
        return out(result)


@asynccontextmanager
async def opened(tool: AnyTool | None = None, **settings: Any) -> AsyncIterator[Session]:
    with anyio.fail_after(BOUND):
        async with Runner([tool or persistent_shell()], **settings) as runner:
            yield Session(runner)


def out(result: ToolResult) -> str:
    assert result.process is not None
    return result.process.stdout


def err(result: ToolResult) -> str:
    assert result.process is not None
    return result.process.stderr


def restarted(result: ToolResult) -> list[str]:
    return [note.text for note in result.notes if note.kind is NoteKind.SHELL_RESTARTED]
