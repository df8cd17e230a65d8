"""What a type checker sees: a decorated function is a `Tool` with the function's own signature, and a wrong option is an error.

The file that is checked expects every error by its code; mypy reports those that are missing as well as those that are new.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

CHECKED = """
from collections.abc import Coroutine
from typing import Any, Callable, assert_type

from toolrunner.tools import Command, Reply, Tool, ToolContext, Toolset, command_tool, tool


@tool
async def bare(path: str) -> int:
    return len(path)


@tool(timeout=3, read_only=True)
async def configured(ctx: ToolContext[int], path: str) -> Reply:
    assert_type(ctx.deps, int)
    async with ctx.effect("file", path) as effect:
        effect.receipt = "done"
        effect.receipt = 5  # type: ignore[assignment]
    return Reply({"path": path})


@command_tool(name="ls")
def listing(path: str) -> Command:
    return Command(("ls", path))


async def use(ctx: ToolContext[int]) -> None:
    assert_type(await bare("x"), int)
    assert_type(await configured(ctx, path="x"), Reply)
    assert_type(listing("x"), Command)
    some: list[Tool[..., Any]] = [bare, configured, listing, *Toolset([bare, len])]
    given: ToolContext[object] = ctx
    await bare(5)  # type: ignore[arg-type]
    await bare()  # type: ignore[call-arg]


tool(timeout="3")  # type: ignore[call-overload]
tool(sandboxed=True)  # type: ignore[call-overload]


@command_tool  # type: ignore[arg-type]
def no_command(path: str) -> str:
    return path
"""


def test_a_type_checker_knows_what_the_decorators_make(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("toolrunner")
    assert spec is not None
    assert spec.submodule_search_locations
    root = Path(next(iter(spec.submodule_search_locations))).parent
    (tmp_path / "checked.py").write_text(CHECKED)
    # An installed package is found without help, and mypy refuses a site-packages in its path.
    env = os.environ | ({} if root.name == "site-packages" else {"MYPYPATH": str(root)})
    argv = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--cache-dir",
        str(tmp_path / "cache"),
        "checked.py",
    ]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (0, "Success: no issues found in 1 source file\n"), done.stdout + done.stderr
