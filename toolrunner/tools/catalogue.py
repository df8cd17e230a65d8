"""Catalogue: the tools of one runner, by name.

State: name -> Registration, in the order of registration. Only `register`, `replace` and what `register` returns change it, each
in one step without an await, so a look-up sees a tool or it does not.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import final
from uuid import uuid4

from toolrunner.errors import ConfigError, DuplicateTool
from toolrunner.tools.isolation import check_name
from toolrunner.tools.toolset import AnyTool

LONGEST_NAME = 64
"""How much of an unknown name is compared: a model may send anything, and comparing costs the square of the length."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Registration:
    """One tool, registered once. `id` is unique over all registrations, which tells a replaced tool from its successor."""

    tool: AnyTool
    id: str


@final
class Catalogue:
    """The tools that calls are looked up in."""

    __slots__ = ("_registrations",)

    def __init__(self, tools: Iterable[AnyTool] = ()) -> None:
        self._registrations: dict[str, Registration] = {}
        for tool in tools:
            self.register(tool)

    def __iter__(self) -> Iterator[Registration]:
        """All registrations, in their order, as they are now: a change meanwhile does not disturb the loop."""
        return iter(tuple(self._registrations.values()))

    def __len__(self) -> int:
        return len(self._registrations)

    def register(self, tool: AnyTool) -> Callable[[], bool]:
        """Add a tool. Returns the way to take it out again, which says whether it was still there.

        Raises:
            DuplicateTool: the name is taken.
        """
        if tool.name in self._registrations:
            raise DuplicateTool(tool.name)
        return self._put(tool)

    def replace(self, tool: AnyTool) -> Callable[[], bool]:
        """Put `tool` in the place of the one with its name. Calls approved for the old one are not run with the new one.

        Raises:
            ConfigError: there is none; use `register`.
        """
        if tool.name not in self._registrations:
            raise ConfigError("name of the tool to replace", tool.name, "a registered one; use register for a new one")
        return self._put(tool)

    def find(self, name: str) -> Registration | None:
        """The tool of this name, or None."""
        return self._registrations.get(name)

    def nearest(self, name: str) -> str | None:
        """The registered name most like an unknown one, or None when none is like it."""
        return next(iter(get_close_matches(name[:LONGEST_NAME], self._registrations, n=1)), None)

    def _put(self, tool: AnyTool) -> Callable[[], bool]:
        check_name(tool)
        registration = self._registrations[tool.name] = Registration(tool, uuid4().hex)

        def unregister() -> bool:
            # Only its own registration: the name may belong to another one by now.
            if self._registrations.get(tool.name) is not registration:
                return False
            del self._registrations[tool.name]
            return True

        return unregister
