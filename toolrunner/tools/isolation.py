"""Which functions a worker process can run: those that it finds again by the name of their module and their own.

Checked in two steps, because a decorator runs before its function has its name: the form when the tool is defined, the name when
the tool is registered. No state.
"""

import inspect
import sys
from collections.abc import Callable

from toolrunner.errors import ToolDefinitionError
from toolrunner.facts import Isolation
from toolrunner.tools.tool import Tool

_MOVE = "move it to the top of a module that can be imported"


def isolation(tool: str, value: Isolation | str) -> Isolation:
    """The isolation meant by the option. Raises `ToolDefinitionError`."""
    try:
        return Isolation(value)
    except ValueError:
        expected = " or ".join(repr(str(one)) for one in Isolation)
        raise ToolDefinitionError(tool, f"isolation is {value!r}; expected {expected}") from None


def check_form(tool: str, fn: Callable[..., object]) -> None:
    """Refuse what no worker process could import. Raises `ToolDefinitionError`."""
    module, qualname = getattr(fn, "__module__", None), getattr(fn, "__qualname__", "")
    if not inspect.isfunction(fn):
        raise ToolDefinitionError(tool, f'has isolation="process" and is a {type(fn).__name__}, not a plain function')
    if "<" in qualname:  # <locals>, <lambda>
        problem = f"{qualname} was made inside another function, with values that a worker process cannot have"
        raise ToolDefinitionError(tool, f'has isolation="process", but {problem}; {_MOVE}')
    if "." in qualname:
        raise ToolDefinitionError(tool, f'has isolation="process", but {qualname} belongs to a class; {_MOVE}')
    if module == "__main__":
        # Loading the script by its path would run it again, and one without a guard would start its runner in every worker.
        problem = "is defined in the script that is being run, which a worker process cannot import"
        raise ToolDefinitionError(tool, f'has isolation="process", but {problem}; {_MOVE}')
    if module not in sys.modules or getattr(sys.modules[module], "__spec__", None) is None:
        raise ToolDefinitionError(tool, f'has isolation="process", but its module {module!r} cannot be imported; {_MOVE}')


def check_name(tool: Tool[..., object]) -> None:
    """Refuse a function that its module does not have under its name. Raises `ToolDefinitionError`."""
    if tool.isolation is Isolation.NONE:
        return
    module, name = tool.fn.__module__, tool.fn.__qualname__
    found = getattr(sys.modules.get(module), name, None)
    if found is not tool.fn and getattr(found, "fn", None) is not tool.fn:
        problem = f"{module} has something else, or nothing, under the name {name}; a worker process would run that"
        raise ToolDefinitionError(tool.name, f'has isolation="process", but {problem}')
