"""The processes that descend from a program, as a forest. Looks through psutil; no state.

Not the program itself, which is named already. Its warden and keepers are shown: whatever daemonised is their child.
"""

from dataclasses import dataclass
from typing import final

import psutil

DEEPEST = 50
"""Generations that are shown."""


@final
@dataclass(frozen=True, slots=True)
class Tree:
    """A process and what descends from it."""

    pid: int
    name: str
    children: "tuple[Tree, ...]"


def forest(pid: int) -> tuple[Tree, ...]:
    """The children of `pid`, oldest first, each with its own."""
    below: dict[int, list[psutil.Process]] = {}
    for process in psutil.process_iter(["ppid", "cmdline", "name"]):
        below.setdefault(process.info["ppid"], []).append(process)
    return _children(pid, below, DEEPEST)


def _children(pid: int, below: dict[int, list[psutil.Process]], depth: int) -> tuple[Tree, ...]:
    if not depth:
        return ()
    return tuple(Tree(one.pid, _name(one), _children(one.pid, below, depth - 1)) for one in below.get(pid, ()) if one.pid != pid)


def _name(process: psutil.Process) -> str:
    """Its command line, or its name if that is not shown. (One that renamed itself has padded what was there.)"""
    return " ".join(process.info["cmdline"] or ()).strip() or process.info["name"] or "?"
