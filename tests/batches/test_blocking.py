"""The runner for programs without async: same results, and Ctrl-C that waits for the truth."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextvars import ContextVar
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal
from batches.stage import text
from liveness import survivors_now, unique_duration

from toolrunner import AbortController, Runner, ToolCall, ToolContext, shell, tool
from toolrunner.errors import ConfigError, RunnerClosed

WHO: ContextVar[str] = ContextVar("who", default="nobody")

both_loops = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@tool
async def double(n: int) -> int:
    return 2 * n


@tool
def whose() -> str:
    return WHO.get()


@both_loops
def test_a_program_without_async_runs_calls_and_batches(backend: str) -> None:
    WHO.set("ann")
    with Runner.blocking([double, whose, shell], backend=backend) as runner:
        assert runner.run("double", {"n": 2}).value == 4
        results = runner.run_batch([ToolCall("double", {"n": 3}), ToolCall("shell", {"command": "echo hi"}), ToolCall("whose")])
        assert runner.result(results[0].run_id) == results[0]
        assert [one["name"] for one in runner.tools_for("anthropic")] == ["double", "whose", "shell"]
    assert results[0].value == 6
    assert results[1].process is not None
    assert results[1].process.stdout == "hi\n"
    assert results[2].value == "ann"


@both_loops
def test_another_thread_may_abort_and_another_may_run(backend: str) -> None:
    controller, working = AbortController(), threading.Event()

    @tool
    def stuck(ctx: ToolContext[Any]) -> None:
        working.set()
        while not ctx.signal.aborted:
            time.sleep(0.001)

    def abort() -> None:
        working.wait(60)
        assert runner.run("double", {"n": 21}).value == 42
        controller.abort("from a thread")

    with Runner.blocking([double, stuck], backend=backend) as runner:
        thread = threading.Thread(target=abort)
        thread.start()
        result = runner.run("stuck", signal=controller.signal)
        thread.join()
    assert (result.outcome, result.ended) == ("aborted", "returned")
    assert result.stop is not None
    assert result.stop.reason == "from a thread"


def test_settings_are_checked_before_anything_runs() -> None:
    with pytest.raises(ConfigError, match="max_threads"):
        Runner.blocking([double], max_threads=0).__enter__()
    with Runner.blocking([double]) as runner, pytest.raises(ConfigError, match="deadline"):
        runner.run_batch([ToolCall("double", {"n": 1})], deadline=0)


def test_after_the_block_calls_are_refused() -> None:
    with Runner.blocking([double]) as runner:
        pass
    with pytest.raises((RunnerClosed, RuntimeError)):
        runner.run("double", {"n": 1})


@both_loops
def test_ctrl_c_aborts_waits_for_what_was_started_and_is_raised_on(backend: str) -> None:
    working, trace = threading.Event(), list[str]()

    @tool
    def stubborn(ctx: ToolContext[Any]) -> str:
        working.set()
        while not ctx.signal.aborted:
            time.sleep(0.001)
        time.sleep(0.1)
        trace.append("body over")
        return "kept"

    def interrupt() -> None:
        working.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    run_ids: list[str] = []
    with Runner.blocking([stubborn, double], backend=backend) as runner:
        assert runner._runner is not None
        runner._runner.on_record(lambda record: run_ids.append(record.run_id) if record.type == "call/recorded" else None)  # type: ignore[attr-defined]
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            runner.run_batch([ToolCall("stubborn"), ToolCall("double", {"n": 1})])
        trace.append("raised")
        thread.join()
        first, second = (runner.result(run_id) for run_id in run_ids)
        # And it can be used on.
        assert runner.run("double", {"n": 4}).value == 8
    assert trace == ["body over", "raised"]
    assert (first.outcome, first.ended, first.value) == ("aborted", "returned", "kept")
    assert first.stop is not None
    assert (first.stop.source, first.stop.reason) == ("host", "KeyboardInterrupt")
    assert (second.code, second.started) == ("ABORTED_BEFORE_DISPATCH", False)


@both_loops
@pytest.mark.parametrize("handed_over", [False, True])
def test_ctrl_c_while_a_call_is_handed_to_the_loop_leaves_nothing_running(
    backend: str, handed_over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It strikes where the calling thread does not yet know whether the loop has the call."""
    working, trace, left = threading.Event(), list[str](), [KeyboardInterrupt()]

    @tool
    def work(ctx: ToolContext[Any]) -> str:
        working.set()
        while not ctx.signal.aborted:
            time.sleep(0.001)
        trace.append("body over")
        return "kept"

    start = BlockingPortal.start_task_soon

    def struck(portal: BlockingPortal, fn: Any, *args: Any) -> Any:
        if left and not handed_over:
            raise left.pop()
        future = start(portal, fn, *args)
        if left:
            working.wait(60)
            raise left.pop()
        return future

    with Runner.blocking([work], backend=backend) as runner:
        monkeypatch.setattr(BlockingPortal, "start_task_soon", struck)
        with pytest.raises(KeyboardInterrupt):
            runner.run("work")
        trace.append("raised")
    assert trace == (["body over", "raised"] if handed_over else ["raised"])
    assert working.is_set() is handed_over


SCRIPT = textwrap.dedent("""
    import sys
    from toolrunner import Runner, shell
    with Runner.blocking([shell]) as runner:
        print("ready", flush=True)
        try:
            runner.run("shell", {"command": f"echo running; setsid sleep {sys.argv[1]} & sleep {sys.argv[1]}"})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
""")


def test_ctrl_c_in_a_blocking_program_takes_its_command_along() -> None:
    mark = unique_duration()
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, mark], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        end = time.monotonic() + 60
        while len(survivors_now(mark, rounds=1)) < 4 and time.monotonic() < end:  # the program, sh, and two sleeps
            time.sleep(0.01)
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=120)
    assert (out, err, program.returncode) == ("interrupted\n", "", 0)
    assert survivors_now(mark) == []


@both_loops
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_an_interrupt_out_of_a_body_is_recorded_and_raised_on(error: type[BaseException], backend: str, sync: bool) -> None:
    @tool(name="quits")
    def quits_in_thread() -> None:
        raise error("from the body")

    @tool
    async def quits() -> None:
        raise error("from the body")

    run_ids: list[str] = []
    with Runner.blocking([quits_in_thread if sync else quits, double], backend=backend) as runner:
        assert runner._runner is not None
        runner._runner.on_record(lambda record: run_ids.append(record.run_id) if record.type == "call/recorded" else None)  # type: ignore[attr-defined]
        with pytest.raises(error, match="from the body"):
            runner.run_batch([ToolCall("quits"), ToolCall("double", {"n": 1})])
        first, second = (runner.result(run_id) for run_id in run_ids)
        assert runner.run("double", {"n": 4}).value == 8
    assert (first.outcome, first.code, first.ended) == ("failed", "TOOL_ERROR", "raised")
    assert error.__name__ in text(first)
    assert (second.code, second.started) == ("ABORTED_BEFORE_DISPATCH", False)
