"""The two tools that the tests of wrappers wrap: one that writes at once, one that waits for its gate.

State: what the bodies of the running test did, the signals they were given, and the gates; conftest.py sees to each at its start.
"""

from typing import Any

from toolrunner import AbortSignal, ToolCall, ToolContext, tool
from toolrunner.testing import Gate

signals: list[AbortSignal] = []
order: list[str] = []
gates: list[Gate] = []


@tool
async def write(ctx: ToolContext[Any], path: str) -> str:
    """Write a file."""
    order.append(f"body {path}")
    signals.append(ctx.signal)
    async with ctx.effect("file", path):
        pass
    return f"wrote {path}"


WRITE = ToolCall("write", {"path": "a"}, call_id="c1")


@tool
async def wait(ctx: ToolContext[Any]) -> str:
    """Wait until the gate opens, or until stopped."""
    signals.append(ctx.signal)
    await gates[-1].wait()
    return "done"
