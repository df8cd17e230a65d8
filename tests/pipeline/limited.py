"""A limit that is over as soon as it is waited for, and a tool that has none.

State: the signals that the bodies of the running test were given; conftest.py empties it at the start of each.
"""

from typing import Any

from toolrunner import AbortSignal, ToolContext, tool

SOON = 0.02  # a limit that is over as soon as it is waited for
signals: list[AbortSignal] = []


@tool
async def free(ctx: ToolContext[Any]) -> str:
    """Have no limit."""
    signals.append(ctx.signal)
    return "done"
