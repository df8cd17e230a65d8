"""Toolset: some tools under unique names, to be combined and cut down before they are given to a runner. Frozen; no state."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias, Union, final

from toolrunner.errors import ConfigError, DuplicateTool
from toolrunner.tools.decorator import tool
from toolrunner.tools.tool import Tool

AnyTool: TypeAlias = Tool[..., Any]
Tools: TypeAlias = Union["Toolset", AnyTool, Callable[..., Any]]
"""What a toolset is made of: tools, toolsets, and plain functions, which are made tools with nothing declared."""


@final
class Toolset:
    """Tools in a fixed order. `a + b` joins two; `name` is for people.

    Raises:
        DuplicateTool: two tools have the same name. (The same tool twice is one tool.)
        ToolDefinitionError: a plain function that cannot be a tool.
    """

    __slots__ = ("_tools", "name")

    def __init__(self, tools: Iterable[Tools] = (), name: str | None = None) -> None:
        self.name = name
        self._tools: dict[str, AnyTool] = {}
        for one in _flat(tools):
            if self._tools.setdefault(one.name, one) is not one:
                raise DuplicateTool(one.name)

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        """Whether it has this tool, or one of this name."""
        return self._tools.get(name.name) is name if isinstance(name, Tool) else name in self._tools

    def __getitem__(self, name: str) -> AnyTool:
        return self._tools[name]

    def __add__(self, other: "Tools | Iterable[Tools]") -> "Toolset":
        """This set and a tool, a function, or several of them; the name stays this set's."""
        return Toolset((*self, other) if callable(other) else (*self, *other), self.name)

    def __repr__(self) -> str:
        return f"Toolset({'' if self.name is None else self.name + ': '}{', '.join(self._tools)})"

    def only(self, *names: str) -> "Toolset":
        """The named tools alone, in this set's order. Raises `ConfigError` for a name it does not have."""
        self._known(names)
        return Toolset((one for one in self if one.name in names), self.name)

    def without(self, *names: str) -> "Toolset":
        """All but the named tools. Raises `ConfigError` for a name it does not have: a typo must not leave a tool in."""
        self._known(names)
        return Toolset((one for one in self if one.name not in names), self.name)

    def prefixed(self, prefix: str) -> "Toolset":
        """The same tools under names that begin with `prefix`. Raises `ToolDefinitionError` for one that providers refuse."""
        return Toolset((replace(one, name=prefix + one.name) for one in self), self.name)

    def _known(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._tools:
                raise ConfigError("name of a tool", name, f"one of {', '.join(self._tools) or 'none, it is empty'}")


def _flat(tools: Iterable[Tools]) -> Iterator[AnyTool]:
    for one in tools:
        if isinstance(one, Tool):
            yield one
        elif isinstance(one, Toolset):
            yield from one
        else:
            yield tool(one)
