"""The shapes that are stopped: what to start for each, and what must be alive before it is stopped. No state."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack, final

PROGRAM = str(Path(__file__).parent / "program.py")

Argv = Sequence[str]
Commands = Callable[[str, str], Sequence[Argv]]
"""From a folder with lifelines and a token to the commands to start."""


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """One shape. `lifelines` is how many FIFOs are opened by what is started, `hidden` how many processes open none."""

    name: str
    about: str
    lifelines: int
    commands: Commands
    hidden: int = 0
    stopped: bool = False
    leader_goes: bool = False


class _Traits(TypedDict, total=False):
    hidden: int
    stopped: bool
    leader_goes: bool


def _shell(script: str, *arguments: str) -> Argv:
    return ("/bin/sh", "-c", script, "sh", *arguments)


def _sleeps(count: int) -> Commands:
    """Single processes: a shell opens the lifeline and becomes `sleep`."""
    script = 'exec 3>"$1"; echo >&3; exec sleep "$2"'
    return lambda folder, token: [_shell(script, f"{folder}/{number}", token) for number in range(count)]


_TREE = """
line() { exec 3>"$folder/$1"; echo >&3; }
stay() { line "$1"; exec sleep "$token"; }
folder=$1 token=$2
export folder token
for one in 1 2 3 4; do stay $one & done
setsid sh -c 'exec 3>"$folder/5"; echo >&3; (exec 3>"$folder/6"; echo >&3; exec sleep "$token") & exec sleep "$token"' &
setsid sh -c 'exec 3>"$folder/7"; echo >&3; (exec 3>"$folder/8"; echo >&3; exec sleep "$token") & exec sleep "$token"' &
setsid -f sh -c 'exec 3>"$folder/9"; echo >&3; exec sleep "$token"'
setsid -f sh -c 'exec 3>"$folder/10"; echo >&3; exec sleep "$token"'
line 0
wait
"""

ONE = Shape("one", "one process", 1, _sleeps(1))
TREE = Shape("tree", "11 processes, sessions of their own and daemons among them", 11, lambda *where: [_shell(_TREE, *where)])
STUBBORN = Shape(
    "stubborn",
    "ignores TERM",
    1,
    lambda folder, token: [_shell('trap \'\' TERM; exec 3>"$1"; echo >&3; exec sleep "$2"', f"{folder}/0", token)],
)


def many(count: int) -> Shape:
    """So many single processes, each started for itself."""
    return Shape(f"many_{count}", f"{count} processes", count, _sleeps(count))


def _program(name: str, about: str, lifelines: int, **what: Unpack[_Traits]) -> Shape:
    def commands(folder: str, token: str) -> list[Argv]:
        return [(sys.executable, "-I", "-S", PROGRAM, name, folder, token)]

    return Shape(name, about, lifelines, commands, **what)


FOURTEEN = (
    _program("a", "same process group", 2),
    _program("b", "child in its own session", 2),
    _program("c0", "double fork, same group", 2),
    _program("c", "double fork, own session", 2),
    _program("d", "the same, nothing inherited", 1, hidden=1),
    _program("e1", "200 children, same group", 201),
    _program("e2", "200 children, own sessions", 201),
    _program("e3", "8 moving targets", 9),
    _program("e4", "8 moving targets, own sessions", 9),
    _program("e5", "growing tree, own sessions", 2),
    _program("f", "ignores TERM", 2),
    _program("g", "all stopped", 2, stopped=True),
    _program("h", "leader gone", 1, leader_goes=True),
    _program("h2", "leader gone, own session", 1, leader_goes=True),
)
