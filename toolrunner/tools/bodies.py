"""Where a tool's body runs, told from the function's form; forms that could not be run truthfully are refused.

No state.
"""

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Any

from toolrunner.errors import ToolDefinitionError


class BodyKind(StrEnum):
    """Where a body runs. `async`: in a task of its own. `sync`: in a thread. `command`: its function only says what to start.

    `shell`: its function only says what to have run in a shell that lives on between calls.
    """

    ASYNC = "async"
    SYNC = "sync"
    COMMAND = "command"
    SHELL = "shell"


def body_kind(tool: str, fn: Callable[..., object]) -> BodyKind:
    """ASYNC or SYNC. Raises `ToolDefinitionError` for what is no plain function, bound method or coroutine function."""
    if isinstance(fn, staticmethod | classmethod):
        raise ToolDefinitionError(tool, f"is a {type(fn).__name__}; put @{type(fn).__name__} above the tool decorator")
    if not inspect.isroutine(fn):
        what = "functools.partial" if isinstance(fn, partial) else type(fn).__name__
        raise ToolDefinitionError(tool, f"is a {what}, not a function; write a function with type hints that calls it")
    if inspect.isasyncgenfunction(fn) or inspect.isgeneratorfunction(fn):
        # A generator's body has not run when it returns, and runs only as far as somebody reads: nobody could say when it ended.
        raise ToolDefinitionError(tool, "is a generator; return one value, and use ctx.output() or ctx.progress() meanwhile")
    return BodyKind.ASYNC if inspect.iscoroutinefunction(fn) else BodyKind.SYNC


def function_name(fn: Callable[..., object]) -> str:
    """The name to speak of a function by, also one that cannot be a tool."""
    name: Any = getattr(fn, "__name__", None)
    return name if isinstance(name, str) else type(fn).__name__
