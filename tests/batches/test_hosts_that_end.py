"""Hosts whose loop is torn down, that use another loop, or that fork, with calls in flight."""

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import anyio
import pytest
from batches.stage import Stage, opened, step, until
from liveness import Lifeline, survivors_now, unique_duration

from toolrunner.errors import RunnerClosed

pytestmark = pytest.mark.anyio

TORN_DOWN = textwrap.dedent("""
    import sys, threading, anyio
    from toolrunner import Runner, ToolCall, MemoryJournal, tool, shell
    backend, kind, line, mark = sys.argv[1:]
    journal, made, trace = MemoryJournal(), [], []
    go = threading.Event()

    @tool(parallel_safe=True)
    async def wait(name: str) -> str:
        trace.append("+" + name)
        try:
            await anyio.sleep_forever()
        finally:
            trace.append("!" + name)
        return name

    @tool(parallel_safe=True)
    def in_thread(name: str) -> str:
        trace.append("+" + name)
        go.wait(60)
        trace.append("-" + name)
        return name

    async def main():
        runner = await Runner([wait, in_thread, shell], journal=journal).__aenter__()
        made.append(runner)
        call = {
            "async": ToolCall("wait", {"name": "a"}),
            "sync": ToolCall("in_thread", {"name": "a"}),
            "command": ToolCall("shell", {"command": line + f"; setsid sleep {mark} & sleep {mark}"}),
        }[kind]
        runner.start_batch([call, ToolCall("shell", {"command": "true"})])
        with anyio.fail_after(60):
            while not any(record.type == "call/dispatched" for record in journal):
                await anyio.sleep(0.001)
            if kind == "command":
                print("ready", flush=True)
                await anyio.to_thread.run_sync(sys.stdin.readline)
            else:
                while not trace:
                    await anyio.sleep(0.001)
        if kind == "sync":
            threading.Timer(0.3, go.set).start()
        if kind == "raises":
            raise ZeroDivisionError

    anyio.run(main, backend=backend)
    (runner,) = made
    settled = [record.result for record in journal if record.type == "call/settled"]
    for result in settled:
        print(result.name, result.outcome, result.code, result.started, result.ended, result.stop and result.stop.source)
        assert runner.result(result.run_id) is result
    print("trace", *trace)
""")


def run_script(script: str, *args: str, stdin: str = "", timeout: float = 120) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-W", "error", "-c", script, *args]
    return subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.mark.case("E26")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("kind", ["async", "sync"])
def test_a_loop_that_is_torn_down_with_bodies_in_flight_leaves_true_results(backend: str, kind: str) -> None:
    done = run_script(TORN_DOWN, backend, kind, "", "")
    assert done.stderr == ""
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    if kind == "async":
        assert lines[0] == "wait aborted ABORTED True stopped shutdown"
        assert lines[-1] == "trace +a !a"
    else:
        # The thread was waited for: its body came to its own end.
        assert lines[0] == "in_thread aborted ABORTED True returned shutdown"
        assert lines[-1] == "trace +a -a"
    assert lines[1:-1] == ["shell aborted ABORTED_BEFORE_DISPATCH False None shutdown"]


@pytest.mark.case("E26")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_loop_that_is_torn_down_with_a_command_in_flight_takes_it_along(backend: str, tmp_path: Path) -> None:
    mark = unique_duration()
    with Lifeline(tmp_path) as line:
        with subprocess.Popen(
            [sys.executable, "-W", "error", "-c", TORN_DOWN, backend, "command", line.sh, mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as host:
            line.wait_opened()
            out, err = host.communicate("go\n", timeout=120)
        line.wait_gone()
    assert survivors_now(mark) == []
    assert (err, host.returncode) == ("", 0)
    assert out.splitlines()[1] == "shell aborted ABORTED True stopped shutdown"


async def test_a_loop_in_another_thread_is_another_loop() -> None:
    stage, errors = Stage(), list[str]()
    async with opened(stage.tools) as runner:

        def elsewhere() -> None:
            async def use() -> None:
                with pytest.raises(RunnerClosed, match="another event loop"):
                    await runner.run(step("a"))
                errors.append("refused")

            anyio.run(use)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        await until(lambda: not thread.is_alive())
        thread.join()
        stage.end("a")
        assert (await runner.run(step("a"))).value == "a"
    assert errors == ["refused"]
    assert stage.entered == ["a"]


FORKED = textwrap.dedent("""
    import os, sys, anyio
    from toolrunner import Runner, ToolCall, tool, shell
    from toolrunner.errors import RunnerClosed

    @tool(parallel_safe=True)
    async def wait(name: str) -> str:
        await anyio.sleep_forever()
        return name

    async def main():
        runner = await Runner([wait, shell]).__aenter__()
        batch = runner.start_batch([ToolCall("wait", {"name": "a"}), ToolCall("shell", {"command": "echo still here"})])
        await anyio.sleep(0.05)
        assert (await runner.run("shell", {"command": "echo before"})).value["stdout"] == "before\\n"
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                for attempt in (lambda: runner.run("shell", {"command": "echo child"}), lambda: runner.start_batch([])):
                    try:
                        made = attempt()
                        if hasattr(made, "send"):
                            made.send(None)
                    except RunnerClosed as error:
                        print("child:", error, flush=True)
                        code = 0
                try:
                    runner.aclose().send(None)
                except StopIteration:
                    print("child: closing it does nothing", flush=True)
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert (await runner.run("shell", {"command": "echo after"})).value["stdout"] == "after\\n"
        batch.abort()
        a, b = await batch
        print("parent:", a.outcome, a.ended, b.outcome, b.code)
        await runner.aclose()

    anyio.run(main, backend=sys.argv[1])
""")


@pytest.mark.case("E26")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_forked_hosts_child_is_refused_and_the_parent_goes_on(backend: str) -> None:
    done = run_script(FORKED, backend)
    assert done.stderr == ""
    assert done.returncode == 0
    refused = "child: this runner takes no calls: it was inherited by a forked process; make a new one there"
    assert done.stdout.splitlines() == [
        refused,
        refused,
        "child: closing it does nothing",
        "parent: aborted stopped aborted ABORTED_BEFORE_DISPATCH",
    ]
