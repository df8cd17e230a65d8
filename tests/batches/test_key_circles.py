"""Circles that go through an idempotency key and a lock, or a batch's order: refused at once, never waited in."""

from typing import Any

import anyio
import pytest
from batches.stage import BOUND, quiet

from toolrunner import Runner, ToolCall, ToolContext, ToolResult, tool
from toolrunner.calls import ToolCall as Call
from toolrunner.registry import ChildCalls
from toolrunner.results import Code, ErrorKind, Outcome

pytestmark = pytest.mark.anyio


def refused_for_a_circle(result: ToolResult) -> bool:
    return result.code is Code.SPAWN_REFUSED and result.error is not None and result.error.kind == ErrorKind.LIMIT


class Play:
    """`first` has the key, `holder` the lock "L"; a child of `holder` wants the key, `first` (or its child) the lock."""

    def __init__(self) -> None:
        self.holds, self.asks, self.wants = anyio.Event(), anyio.Event(), anyio.Event()
        self.inner: list[ToolResult] = []

        @tool(parallel_safe=True, resources=lambda args: ["L"])
        async def locked(who: str) -> str:
            return who

        @tool(parallel_safe=True)
        async def outer(ctx: ToolContext[Any]) -> str:
            """Hold a key, and have a child that wants the lock."""
            await self.holds.wait()
            self.asks.set()
            self.inner.append(await ctx.run("locked", {"who": "child of outer"}))
            return "outer"

        self.tools = [locked, outer]
