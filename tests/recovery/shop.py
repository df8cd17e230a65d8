"""A session that is opened again and again, and a tool of which is known what it really did."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from toolrunner import Runner, SqliteJournal, ToolCall, ToolContext, ToolError, tool

BOUND = 20.0


@asynccontextmanager
async def opened(path: Path, *tools: Any, **settings: Any) -> AsyncIterator[Runner]:
    """A runner over the journal at `path`, and a bound on all that is waited for in it."""
    with anyio.fail_after(BOUND):
        async with Runner(tools, journal=SqliteJournal.open(path), **settings) as runner:
            yield runner


class Shop:
    """`pay` counts what it really did; what happens to its body is the test's own."""

    def __init__(self, **options: Any) -> None:
        self.paid: list[int] = []
        self.fails = False

        @tool(parallel_safe=True, **options)
        async def pay(amount: int, ctx: ToolContext[Any]) -> str:
            async with ctx.effect("http", f"payment of {amount}") as effect:
                self.paid.append(amount)
                if self.fails:
                    raise ToolError("no answer")
                effect.receipt = "receipt"
            return f"paid {amount}"

        self.pay = pay


def pay(amount: int, key: str | None = None, **more: Any) -> ToolCall:
    return ToolCall("pay", {"amount": amount}, idempotency_key=key, **more)


MORE: dict[str, Any] = {"call_id": "c", "timeout": 50.0, "meta": {"a": [1]}, "provider_meta": {"id": "item"}, "kind": "custom"}
