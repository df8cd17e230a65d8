"""What a function's signature says: its parameters with their resolved type hints, the context parameter, the return type.

No state. Whatever cannot be turned into a schema truthfully is refused here, by name.
"""

import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Union, final

from toolrunner.errors import ToolDefinitionError
from toolrunner.tools.context import ToolContext

NOTHING: Any = inspect.Parameter.empty
"""No default, or no hint. (None is both a default and a hint.)"""

_REFUSED = {
    inspect.Parameter.VAR_POSITIONAL: "*{} takes any number of arguments, which no schema can tell a model; name each one",
    inspect.Parameter.VAR_KEYWORD: "**{} takes any argument, which no schema can tell a model; name each one",
    inspect.Parameter.POSITIONAL_ONLY: "parameter {!r} is positional-only, but arguments are given by name",
}


@final
@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that the model fills. `default` is `NOTHING` for a required one."""

    name: str
    hint: Any
    default: Any


@final
@dataclass(frozen=True, slots=True)
class Hints:
    """All that the signature says. `returns` is `NOTHING` without a return annotation."""

    parameters: tuple[Parameter, ...]
    context: str | None
    returns: Any


def read_hints(tool: str, fn: Callable[..., object]) -> Hints:
    """Read the signature of `fn`.

    Raises:
        ToolDefinitionError: a parameter that cannot be given by name, has no hint, or a hint that does not resolve.
    """
    try:
        signature = inspect.signature(fn)
    except ValueError as error:
        raise ToolDefinitionError(tool, "has no signature that can be read; wrap it in a function with type hints") from error
    for found in signature.parameters.values():
        if found.kind in _REFUSED:
            raise ToolDefinitionError(tool, _REFUSED[found.kind].format(found.name))
    hints = _resolved(tool, fn)
    parameters = [Parameter(one.name, hints.get(one.name, NOTHING), one.default) for one in signature.parameters.values()]
    contexts = [one.name for one in parameters if is_context(one.hint)]
    if len(contexts) > 1:
        raise ToolDefinitionError(tool, f"takes the context more than once: {', '.join(contexts)}")
    for index, one in enumerate(parameters):
        if one.hint is NOTHING:
            raise ToolDefinitionError(tool, _unhinted(one.name, index))
    rest = tuple(one for one in parameters if one.name not in contexts)
    return Hints(rest, contexts[0] if contexts else None, hints.get("return", NOTHING))


def is_context(hint: object) -> bool:
    """Whether a hint asks for the context: `ToolContext`, `ToolContext[X]`, also in `Annotated` or a union."""
    origin = typing.get_origin(hint)
    if origin is Annotated or origin is Union or origin is types.UnionType:
        return any(is_context(part) for part in typing.get_args(hint))
    return hint is ToolContext or origin is ToolContext


def _resolved(tool: str, fn: Callable[..., object]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(fn, include_extras=True)
    except Exception as error:
        # Any exception: a string annotation is an expression of the tool's author.
        raise ToolDefinitionError(
            tool, f"has a type hint that cannot be resolved ({error}); types named in strings must be importable from its module"
        ) from error


def _unhinted(name: str, index: int) -> str:
    if index == 0 and name in {"self", "cls"}:
        return f"is a method that nobody is bound to (it takes {name}); make the tool of a bound method: tool(thing.method)"
    return f"parameter {name!r} has no type hint; the model would not know what to send (use typing.Any if anything is right)"
