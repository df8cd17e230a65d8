"""A tool that says when its body is entered, and arguments that say how often they are read.

State: the bodies that the running test entered; conftest.py empties it at the start of each.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from toolrunner import ToolCall, tool

entered: list[str] = []


@tool
async def write(path: str) -> str:
    """Write a file."""
    entered.append(path)
    return f"wrote {path}"


WRITE = ToolCall("write", {"path": "a"}, call_id="c1")


class CountedMapping(Mapping[str, Any]):
    """Counts how often it is read, and reads differently each time."""

    def __init__(self) -> None:
        self.reads = 0

    def __getitem__(self, key: str) -> str:
        self.reads += 1
        return f"read {self.reads}"

    def __iter__(self) -> Iterator[str]:
        return iter(["path"])

    def __len__(self) -> int:
        return 1
