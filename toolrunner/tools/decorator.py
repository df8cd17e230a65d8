"""`@tool` and `@command_tool`: a function becomes a `Tool`, or a `ToolDefinitionError` that says what to change.

No state.
"""

import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from toolrunner.errors import ToolDefinitionError
from toolrunner.facts import Isolation
from toolrunner.tools.bodies import BodyKind, body_kind, function_name
from toolrunner.tools.command import Command
from toolrunner.tools.docstring import Docstring, read_docstring
from toolrunner.tools.isolation import check_form, isolation
from toolrunner.tools.options import ToolOptions, annotations, compensation, known_options, retry_policy, watched
from toolrunner.tools.problems import ToolDefinitionWarning
from toolrunner.tools.schema import Signature, read_command_signature, read_signature
from toolrunner.tools.tool import Tool

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tool(fn: Callable[P, R], /, **options: Unpack[ToolOptions]) -> Tool[P, R]: ...
@overload
def tool(fn: None = None, /, **options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(fn: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Make a tool of a function, as `@tool` or `@tool(read_only=True, ...)`. Options: see `ToolOptions`.

    Name, description and parameters schema come from the function's name, docstring and type hints. A parameter annotated with
    `ToolContext` gets the context. A coroutine function runs in a task, any other in a thread;
    `isolation="process"` gives either a process of its own.

    Raises:
        ToolDefinitionError: naming the parameter or option that cannot be worked with.
    """
    if fn is None:
        return lambda decorated: _function_tool(decorated, options)
    return _function_tool(fn, options)


@overload
def command_tool(fn: Callable[P, Command], /, **options: Unpack[ToolOptions]) -> Tool[P, Command]: ...
@overload
def command_tool(fn: None = None, /, **options: Unpack[ToolOptions]) -> Callable[[Callable[P, Command]], Tool[P, Command]]: ...
def command_tool(fn: Callable[..., Command] | None = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Make a tool of a function that returns the `Command` to run as a supervised process. Options: see `ToolOptions`.

    The function is called while the call is prepared, before policy and approval look at the command, and again whenever the
    arguments change. So it must be pure: it looks at its arguments and nothing else, and changes nothing.

    Raises:
        ToolDefinitionError: as `tool`; also for a coroutine function, a context, a return annotation that is not `Command`.
    """
    if fn is None:
        return lambda decorated: _command_tool(decorated, options)
    return _command_tool(fn, options)


def _function_tool(fn: Callable[..., Any], options: ToolOptions) -> Tool[..., Any]:
    name, kind, doc = _read(fn, options)
    made = _made(name, kind, fn, options, doc, read_signature(name, fn, doc.parameters))
    if made.isolation is Isolation.PROCESS:
        check_form(name, fn)
    elif kind is BodyKind.SYNC and made.timeout is not None:
        warnings.warn(
            f"tool {name!r}: a thread cannot be stopped, so after its timeout of {made.timeout:g} s the call still waits until "
            'the function returns; check ctx.signal in it, make it `async def`, or use isolation="process"',
            ToolDefinitionWarning,
            stacklevel=3,  # the line with the decorator, in both of its forms
        )
    return made


def _command_tool(fn: Callable[..., Any], options: ToolOptions) -> Tool[..., Any]:
    name, kind, doc = _read(fn, options)
    if kind is BodyKind.ASYNC:
        raise ToolDefinitionError(name, "is a command tool; its function only says what to start, so declare it with `def`")
    if isolation(name, options.get("isolation", Isolation.NONE)) is not Isolation.NONE:
        raise ToolDefinitionError(name, "is a command tool, which runs as a process already; leave isolation out")
    return _made(name, BodyKind.COMMAND, fn, options, doc, read_command_signature(name, fn, doc.parameters))


def _read(fn: Callable[..., Any], options: ToolOptions) -> tuple[str, BodyKind, Docstring]:
    name = options.get("name")
    if name is None:
        name = function_name(fn)
    known_options(name, options)
    if isinstance(fn, Tool):
        raise ToolDefinitionError(name, "is a tool already")
    return name, body_kind(name, fn), read_docstring(fn.__doc__)


def _made(
    name: str, kind: BodyKind, fn: Callable[..., Any], options: ToolOptions, doc: Docstring, signature: Signature
) -> Tool[..., Any]:
    description = options.get("description")
    return Tool(
        name=name,
        description=doc.description if description is None else description,
        kind=kind,
        fn=fn,
        signature=signature,
        annotations=annotations(name, options),
        parallel_safe=options.get("parallel_safe"),
        resources=options.get("resources"),
        timeout=options.get("timeout"),
        kill_after=options.get("kill_after"),
        max_concurrency=options.get("max_concurrency"),
        retry=retry_policy(name, options.get("retry")),
        compensate=compensation(name, options.get("compensate")),
        dedupe_by_arguments=options.get("dedupe_by_arguments", False),
        watch=watched(name, options.get("watch", ())),
        isolation=isolation(name, options.get("isolation", Isolation.NONE)),
    )
