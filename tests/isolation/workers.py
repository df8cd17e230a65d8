"""Tools that run in worker processes, which import them by the name of this module. Most are hostile or broken on purpose."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import anyio

from toolrunner import Reply, ToolContext, ToolError, tool
from toolrunner.facts import Text

counter = [0]


@tool(isolation="process")
async def hello(name: str, ctx: ToolContext[Any]) -> dict[str, Any]:
    """Use everything a body may use."""
    async with ctx.effect("greeting", name) as effect:
        effect.receipt = "r1"
    ctx.output("said")
    ctx.progress("half", 1, 2)
    ctx.follow_up({"to": name})
    print("printed")
    print("complained", file=sys.stderr)
    return {"hi": name, "run_id": ctx.run_id, "call_id": ctx.call.call_id, "attempt": ctx.attempt, "pid": os.getpid()}


@tool(isolation="process")
def hello_sync(name: str, ctx: ToolContext[Any]) -> dict[str, Any]:
    """The same without an event loop."""
    with ctx.effect("greeting", name) as effect:
        effect.receipt = "r1"
    ctx.output("said")
    ctx.progress("half", 1, 2)
    ctx.follow_up({"to": name})
    print("printed")
    print("complained", file=sys.stderr)
    return {"hi": name, "run_id": ctx.run_id, "call_id": ctx.call.call_id, "attempt": ctx.attempt, "pid": os.getpid()}


@tool(isolation="process")
def surroundings() -> dict[str, Any]:
    fds = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    counter[0] += 1
    return {
        "isolated": sys.flags.isolated,
        "path": sys.path,
        "inherited": [fd for fd in fds if fd > 2 and os.path.exists(f"/proc/self/fd/{fd}") and os.get_inheritable(fd)],
        "count": counter[0],
        "cwd": os.getcwd(),
    }


@tool(isolation="process")
async def loop_name() -> str:
    return "trio" if "trio" in sys.modules and not asyncio._get_running_loop() else "asyncio"


def plain() -> str:
    return "plain"


renamed = tool(plain, name="another_name", isolation="process")


@tool(isolation="process", kill_after=5)
async def tidy(ready: str, done: str) -> str:
    """Clean up when it is cancelled."""
    Path(ready).touch()
    try:
        await anyio.sleep(600)
    finally:
        Path(done).touch()
    return "never"


@tool(isolation="process", kill_after=5)
def watchful(ready: str, ctx: ToolContext[Any]) -> str:
    """Return what it has when it is asked to stop."""
    Path(ready).touch()
    while not ctx.signal.aborted:
        time.sleep(0.005)
    assert ctx.signal.reason is not None
    return f"{ctx.signal.reason.source}: {ctx.signal.reason.text}"


@tool(isolation="process", kill_after=5)
async def never_yields(ready: str, ctx: ToolContext[Any]) -> str:
    """An async body that holds its loop, and still sees the signal."""
    Path(ready).touch()
    while not ctx.signal.aborted:
        time.sleep(0.005)
    return "saw it"


@tool(isolation="process", kill_after=0.3)
async def stubborn(ready: str) -> str:
    """Ignore everything, and have a grandchild that does too."""
    script = "trap '' TERM HUP INT; while :; do sleep 613; done"
    subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(ready).touch()
    while True:
        time.sleep(600)


@tool(isolation="process", kill_after=0.3)
async def stubborn_effect(ready: str, ctx: ToolContext[Any]) -> None:
    """Ignore everything inside an effect, after one that was made."""
    async with ctx.effect("row", "first"):
        pass
    async with ctx.effect("row", "second", shield=True):
        Path(ready).touch()
        await anyio.sleep(600)


@tool(isolation="process")
async def writes(path: str, ctx: ToolContext[Any]) -> None:
    async with ctx.effect("file", path):
        Path(path).write_text("written")


@tool(isolation="process", kill_after=5)
async def fails_when_stopped(ready: str) -> None:
    Path(ready).touch()
    try:
        await anyio.sleep(600)
    except BaseException as error:
        raise ToolError("my command was killed", kind="command") from error


@tool(isolation="process")
async def uses_deps(ctx: ToolContext[Any]) -> str:
    return str(ctx.deps.database)


@tool(isolation="process")
async def calls(ctx: ToolContext[Any], name: str = "adder") -> Any:
    result = await ctx.run(name, {"a": 1, "b": 2})
    return {"value": result.value, "outcome": result.outcome, "parent": result.parent_run_id == ctx.run_id}


@tool(isolation="process")
def calls_sync(ctx: ToolContext[Any]) -> None:
    ctx.run("adder", {})  # type: ignore[unused-coroutine]


@tool(isolation="process")
async def raises(kind: str) -> Any:
    if kind == "tool_error":
        raise ToolError("no such row", kind="not_found")
    if kind == "group":
        raise ExceptionGroup("two", [ValueError("a"), KeyError("b")])
    if kind == "surrogate":
        raise OSError(2, "No such file", "bad\udcff")
    raise LookupError("nothing there")


@tool(isolation="process")
def replies(text: str) -> Reply:
    return Reply({"n": 1}, (Text(text),), ("more",))


@tool(isolation="process")
def returns(what: str) -> Any:
    return {"object": object(), "nan": float("nan"), "huge": "x" * (40 << 20) if what == "huge" else ""}[what]


@tool(isolation="process", retry=2, idempotent=True)
def second_time(ctx: ToolContext[Any]) -> int:
    if ctx.attempt == 1:
        raise ToolError("not yet")
    return ctx.attempt


def _forged(text: str) -> None:
    """Write this to every socket there is, which is what a body would do that looks for its channel."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:") and int(name) >= 512:
                os.write(int(name), text.encode("latin-1"))
        except OSError:
            continue


@tool(isolation="process", kill_after=0.3)
def hostile(how: str, path: str = "") -> str:  # noqa: C901, PLR0912 - one row for each way
    match how:
        case "os._exit(3)":
            os._exit(3)
        case "os._exit(0)":
            os._exit(0)
        case "sys.exit":
            sys.exit(4)
        case "interrupt":
            raise KeyboardInterrupt
        case "kill":
            print("last words")
            os.kill(os.getpid(), signal.SIGKILL)
        case "segfault":
            ctypes.string_at(0)
        case "recursion":
            return hostile.fn(how, path)  # with both: Python 3.13.0 forgets to count calls that use a default
        case "stack":
            sys.setrecursionlimit(1 << 30)
            return repr(_nested())
        case "fork":
            if os.fork():
                os._exit(0)
            time.sleep(600)
        case "twice":
            os.fork()
        case "close":
            os.closerange(3, 4096)
        case "reuse":
            os.closerange(3, 4096)
            for _ in range(600):
                os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        case "garbage":
            _forged("\0\0\0\x05hello")
            time.sleep(600)
        case "giant":
            _forged("\xff\xff\xff\xff")
            time.sleep(600)
        case "unknown effect":
            body = '{"type":"effect_end","effect":"none","stage":"applied"}'
            _forged("\0\0\0" + chr(len(body)) + body)
            time.sleep(600)
        case "print":
            for _ in range(4096):
                print("x" * 1023)
        case "thread":
            threading.Thread(target=time.sleep, args=(600,), daemon=False).start()
        case "background":
            subprocess.Popen(["sleep", path], start_new_session=True)
    return "returned"


def _nested() -> Any:
    value: list[Any] = []
    for _ in range(1_000_000):
        value = [value]
    return value


@tool(isolation="process")
async def forks_and_returns(raw: bool) -> str:
    """Fork, as Python does it or behind its back, and let both return, the child first."""
    fork: Any = ctypes.PyDLL(None).fork if raw else os.fork
    if child := fork():
        os.waitpid(child, 0)
    return f"returned in {os.getpid()}"
