"""A command that could not be started as described is refused when it is described, by a command tool as bad arguments."""

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolrunner.errors import ConfigError, ToolError
from toolrunner.process import LaunchPlan, Leftovers
from toolrunner.tools import Command, InvalidArguments, command_tool, shell


@pytest.mark.parametrize(
    "argv, said",
    [
        ((), "a command and its arguments"),
        (("",), "a command and its arguments"),
        ("ls -l", "a sequence of strings"),
        (b"ls", "a sequence of strings"),
        (5, "a sequence of strings"),
        (("ls", 5), "strings only, not int"),
        (("ls", b"x"), "strings only, not bytes"),
        (("ls", Path("x")), "strings only, not"),
        (("ls", "a\0b"), "without NUL"),
        (("ls", "\ud800"), "can be encoded"),
    ],
)
def test_an_argv_that_could_not_be_started_is_refused(argv: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Command(argv)


@pytest.mark.parametrize(
    "field, value",
    [
        ("env", {"": "x"}),
        ("env", {"A=B": "x"}),
        ("env", {"A": "x\0"}),
        ("env", {"A\0": "x"}),
        ("env", {"A": 5}),
        ("env", {5: "x"}),
        ("env", [("A", "x")]),
        ("cwd", "a\0"),
        ("cwd", 5),
        ("stdin", 5),
        ("output_limit", -1),
        ("output_limit", 1.5),
        ("output_limit", True),
        ("ok", (256,)),
        ("ok", (-1,)),
        ("ok", ("0",)),
        ("watch", (5,)),
        ("watch", ("a\0",)),
        *(("timeout", value) for value in (0, -1, math.nan, math.inf, True, "5")),
        *(("kill_after", value) for value in (-1, math.nan, math.inf, True, "5")),
    ],
)
def test_a_part_of_a_command_that_makes_no_sense_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=field):
        Command(("ls",), **{field: value})


def test_a_command_is_a_copy_that_nobody_can_change() -> None:
    argv, env = ["ls"], {"A": "1"}
    command = Command(argv, env=env, ok=[0, 1], watch="data")
    argv.append("-l")
    env["B"] = "2"
    assert (command.argv, dict(command.env), command.ok, command.watch) == (("ls",), {"A": "1"}, (0, 1), ("data",))
    with pytest.raises(TypeError):
        command.env["C"] = "3"  # type: ignore[index]
    assert replace(command, cwd="/").argv == ("ls",)


def test_undecodable_file_names_and_removed_variables_are_fine() -> None:
    name = os.fsdecode(b"caf\xe9")
    assert Command(("cat", name), cwd=Path("/"), env={"A": None}, stdin="text", kill_after=0).argv == ("cat", name)


@given(st.lists(st.text(), max_size=4))
@example(["a", "\ud800"])
def test_a_command_that_is_taken_can_be_encoded_for_the_kernel(argv: list[str]) -> None:
    try:
        command = Command(argv)
    except ConfigError:
        return
    encoded = [os.fsencode(word) for word in command.argv]
    assert encoded[0]
    assert not any(b"\0" in word for word in encoded)
    assert LaunchPlan(tuple(encoded)).argv == tuple(encoded)


@command_tool(timeout=9)
def grep(pattern: str, path: str = ".") -> Command:
    """Search.

    Args:
        pattern: What for.
    """
    if pattern == "refused":
        raise InvalidArguments("not that one")
    if pattern == "silent":
        raise KeyError
    if pattern == "tool error":
        raise ToolError("no such index")
    if pattern == "nothing":
        return None  # type: ignore[return-value]
    return Command(("grep", "-r", "--", pattern, path), ok=(0, 1))


def test_a_command_tool_makes_a_command_from_parsed_arguments() -> None:
    assert grep.command(grep.parse({"pattern": "x"})) == Command(("grep", "-r", "--", "x", "."), ok=(0, 1))
    assert grep("x") == grep.command({"pattern": "x", "path": "."})
    assert grep.parameters["properties"]["pattern"] == {"type": "string", "description": "What for."}


@pytest.mark.parametrize(
    "pattern, said",
    [
        ("a\0b", "grep: no command could be made from these arguments: argv is .*without NUL"),
        ("refused", "^not that one$"),
        ("silent", "KeyError"),
        ("tool error", "no such index"),
        ("nothing", "grep: returned NoneType, not a Command"),
    ],
)
def test_whatever_goes_wrong_while_a_command_is_made_is_wrong_with_the_arguments(pattern: str, said: str) -> None:
    with pytest.raises(InvalidArguments, match=said):
        grep.command(grep.parse({"pattern": pattern}))


def test_the_shell_runs_a_command_line_with_sh() -> None:
    assert shell.command(shell.parse({"command": "echo hi"})) == Command(("/bin/sh", "-c", "echo hi"))
    full = {"command": "ls", "cwd": "/tmp", "timeout": 2.5}
    assert shell.command(shell.parse(full)) == Command(("/bin/sh", "-c", "ls"), cwd="/tmp", timeout=2.5)


@pytest.mark.case("E11")
@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, "soon"])
def test_the_shell_refuses_a_timeout_that_is_no_time(seconds: Any) -> None:
    with pytest.raises(InvalidArguments, match="timeout: got"):
        shell.parse({"command": "ls", "timeout": seconds})


def test_the_shell_refuses_an_empty_command_line() -> None:
    with pytest.raises(InvalidArguments, match="command: got ''"):
        shell.parse({"command": ""})


def test_the_shell_declares_the_worst_and_runs_alone() -> None:
    assert (shell.annotations.destructive, shell.annotations.open_world, shell.annotations.read_only) == (True, True, False)
    assert shell.is_parallel(shell.parse({"command": "true"})) is False
    assert shell.parameters["required"] == ["command"]


def test_what_becomes_of_leftovers_can_be_said_with_the_word() -> None:
    assert Command(("x",), leftovers="keep").leftovers is Leftovers.KEEP
    with pytest.raises(ConfigError, match="'kill' or 'keep'"):
        Command(("x",), leftovers="maybe")
