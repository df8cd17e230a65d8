"""`@f.reconcile`: what a tool declares to find out, afterwards, whether a call of unknown effects took effect. No state."""

import inspect
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, TypeVar

from toolrunner.calls import ToolCall
from toolrunner.errors import ToolDefinitionError
from toolrunner.facts import Effects
from toolrunner.tools.context import ToolContext


class Reconciled(StrEnum):
    """What is known, afterwards, of a call that left its effects unknown."""

    COMPLETED = "completed"
    NONE = "none"
    UNKNOWN = "unknown"


ReconcileFunction = Callable[[ToolContext[Any], ToolCall, Effects], Awaitable[str]]
"""(ctx, call, effects) -> "completed", "none" or "unknown"."""

ReconcileFn = TypeVar("ReconcileFn", bound=ReconcileFunction)


def check_reconcile(tool: str, fn: ReconcileFunction) -> None:
    """Refuse what cannot be called as one. Raises `ToolDefinitionError`."""
    if not inspect.iscoroutinefunction(fn):
        raise ToolDefinitionError(tool, "has a reconcile function that is not declared with `async def`")
    try:
        inspect.signature(fn).bind(None, None, None)
    except TypeError:
        raise ToolDefinitionError(tool, "has a reconcile function that does not take (ctx, call, effects)") from None
