"""The end of a runner: closed, left in another task, its loop torn down, its host forked. True results, or RunnerClosed."""

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import anyio
import pytest
from batches.stage import BOUND, Stage, alone, assert_never_entered, opened, step, stubborn, text, until
from liveness import Lifeline, survivors_now, unique_duration
from stillness import quiet

from toolrunner import AbortSignal, MemoryJournal, Runner, ToolCall, shell, tool
from toolrunner.errors import RunnerClosed
from toolrunner.results import Code, Outcome

pytestmark = pytest.mark.anyio


@pytest.mark.case("E16")
async def test_closing_with_calls_in_flight_stops_and_drains_them_and_takes_no_more() -> None:
    stage, closed = Stage(), anyio.Event()
    with anyio.fail_after(10):
        runner = await Runner(stage.tools).__aenter__()
        batch = runner.start_batch([stubborn("a"), step("b"), alone("c")])
        await stage.started("a", "b")

        async def close() -> None:
            await runner.aclose()
            closed.set()

        async with anyio.create_task_group() as group:
            group.start_soon(close)
            await quiet()
            assert not closed.is_set()
            with pytest.raises(RunnerClosed, match="it is closed"):
                await runner.run(step("late"))
            with pytest.raises(RunnerClosed, match="it is closed"):
                runner.start_batch([step("late")])
            stage.end("a")
        a, b, c = await batch
        assert [runner.result(run_id) for run_id in batch.run_ids] == [a, b, c]
        await runner.aclose()  # again: nothing
    assert stage.entered == ["a", "b"]
    assert (a.outcome, a.code, a.ended, a.value) == ("aborted", "ABORTED", "returned", "a")
    assert (b.outcome, b.code, b.ended) == ("aborted", "ABORTED", "stopped")
    assert_never_entered(c)
    for result in (a, b, c):
        assert result.stop is not None
        assert (result.stop.source, result.stop.reason) == ("shutdown", "the runner was closed")


@pytest.mark.case("E16")
async def test_two_tasks_that_close_at_once_both_wait_for_the_end() -> None:
    stage, over = Stage(), list[str]()
    with anyio.fail_after(10):
        runner = await Runner(stage.tools).__aenter__()
        batch = runner.start_batch([stubborn("a")])
        await stage.started("a")

        async def close(name: str) -> None:
            await runner.aclose()
            over.append(name)

        async with anyio.create_task_group() as group:
            group.start_soon(close, "one")
            group.start_soon(close, "two")
            await quiet()
            assert over == []
            stage.end("a")
        assert sorted(over) == ["one", "two"]
        assert (await batch)[0].ended == "returned"


@pytest.mark.case("E16")
@pytest.mark.virtual_time
async def test_a_bounded_close_publishes_what_runs_on_as_still_running() -> None:
    stage = Stage()
    with anyio.fail_after(10):
        runner = await Runner(stage.tools).__aenter__()
        batch = runner.start_batch([stubborn("a"), alone("b")])
        await stage.started("a")
        await runner.aclose(limit=0.1)
        a, b = await batch
        assert (a.outcome, a.code, a.started, a.ended) == ("aborted", "ABORTED", True, None)
        assert a.still_running is not None
        assert [(one.what, one.kind) for one in a.still_running] == [("stubborn", "body")]
        assert "still running" in text(a)
        assert_never_entered(b)
        stage.end("a")
        await quiet()
        assert runner.result(a.run_id) is a
    assert stage.log[-1] == "-a"


async def test_a_cancelled_close_goes_on_to_its_end() -> None:
    stage = Stage()
    with anyio.fail_after(10):
        runner = await Runner(stage.tools).__aenter__()
        batch = runner.start_batch([stubborn("a")])
        await stage.started("a")
        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as scope:
                group.start_soon(_end_later, stage, "a")
                scope.cancel()
                await runner.aclose()
        assert (await batch)[0].ended == "returned"
        assert runner._services is not None
        assert runner._services.root.live == ()


async def _end_later(stage: Stage, name: str) -> None:
    for _ in range(20):
        await anyio.lowlevel.checkpoint()
    stage.end(name)


async def test_a_runner_that_was_not_entered_or_is_entered_twice_says_so() -> None:
    runner = Runner([])
    with pytest.raises(RunnerClosed, match="it was not entered"):
        await runner.run("x")
    await runner.aclose()
    with anyio.fail_after(10):
        async with Runner([]) as entered:
            with pytest.raises(RunnerClosed, match="entered before"):
                await entered.__aenter__()
            assert (await entered.run("x")).code == "UNKNOWN_TOOL"


@pytest.mark.case("E26")
async def test_a_runner_may_be_left_in_another_task_than_it_was_entered_in() -> None:
    stage, made, used, left = Stage(), list[Runner](), anyio.Event(), anyio.Event()
    with anyio.fail_after(10):

        async def enter() -> None:
            with anyio.CancelScope():  # which the runner outlives
                made.append(await Runner(stage.tools).__aenter__())

        async def leave() -> None:
            await used.wait()
            await made[0].__aexit__(None, None, None)
            left.set()

        async with anyio.create_task_group() as group:
            group.start_soon(enter)
            group.start_soon(leave)
            await quiet()
            batch = made[0].start_batch([step("a"), alone("b")])
            await stage.started("a")
            used.set()
            a, b = await batch
            await left.wait()
    assert (a.outcome, a.ended) == ("aborted", "stopped")
    assert a.stop is not None
    assert a.stop.source == "shutdown"
    assert_never_entered(b)


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
        go.wait(10)
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
        with anyio.fail_after(10):
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


def run_script(script: str, *args: str, stdin: str = "", timeout: float = 30) -> subprocess.CompletedProcess[str]:
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
            out, err = host.communicate("go\n", timeout=30)
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


async def test_a_runner_leaves_no_thread_task_or_descriptor_behind() -> None:
    @tool(parallel_safe=True)
    def in_thread(number: int) -> int:
        return number

    descriptors = set(os.listdir("/proc/self/fd"))
    async with opened(in_thread, shell) as runner:
        results = await runner.run_batch(
            [*(ToolCall("in_thread", {"number": n}) for n in range(20)), ToolCall("shell", {"command": "true"})]
        )
        assert all(result.outcome == "succeeded" for result in results)
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("toolrunner")] == []
    assert set(os.listdir("/proc/self/fd")) - descriptors == set()


async def test_a_journal_of_the_hosts_own_outlives_its_runner() -> None:
    journal = MemoryJournal()
    stage = Stage()
    stage.end("a")
    async with opened(stage.tools, journal=journal) as runner:
        await runner.run(step("a"))
    assert [record.type for record in journal][-1] == "call/settled"


async def test_results_are_kept_for_a_thousand_calls() -> None:
    @tool(read_only=True)
    async def number(n: int) -> int:
        return n

    async with opened(number, bound=60) as runner:
        batch = runner.start_batch([ToolCall("number", {"n": n}) for n in range(1001)])
        await batch
        with pytest.raises(LookupError, match="no call with run_id"):
            runner.result(batch.run_ids[0])
        assert runner.result(batch.run_ids[1]).value == 1
        assert runner.result(batch.run_ids[-1]).value == 1000


async def test_a_hook_that_swallows_its_cancel_for_ever_does_not_keep_the_runner_from_closing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("toolrunner.tasks.FOREIGN_BOUND", 0.05)
    monkeypatch.setattr("toolrunner.pipeline.hooks.HOOK_STOP_BOUND", 0.05)
    let_go = anyio.Event()

    async def clings(call: ToolCall, signal: AbortSignal) -> None:
        while not let_go.is_set():
            with anyio.CancelScope(shield=True):
                try:
                    await let_go.wait()
                except anyio.get_cancelled_exc_class():
                    pass

    @tool
    async def body() -> None: ...

    with anyio.fail_after(BOUND):
        async with Runner([body], hook_timeout=0.05) as runner:
            runner.pre_execute(clings)
            result = await runner.run("body")
    assert (result.outcome, result.code, result.started) == (Outcome.REJECTED, Code.HOOK_ERROR, False)
    assert "clings" in caplog.text
    let_go.set()
    await quiet()
