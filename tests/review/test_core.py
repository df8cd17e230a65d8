"""What a reading of the core against its contract found: each of these was wrong once."""

import contextlib
import subprocess
import sys
import textwrap
import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from batches.stage import Stage, alone, opened, step, until
from stillness import all_blocked, quiet

from toolrunner import (
    AbortController,
    AbortSignal,
    Decision,
    Policy,
    ToolCall,
    ToolResult,
    shell,
    tool,
)
from toolrunner.pipeline.leases import LeaseDesk, Needs, Place
from toolrunner.policy import ApprovalRequest
from toolrunner.tasks import TaskRoot
from toolrunner.testing import FakeCommand, FakeSupervisor
from toolrunner.tools import RetryPolicy

TORN_DOWN_AT_ANY_STEP = textwrap.dedent("""
    import asyncio, itertools, anyio
    from toolrunner import MemoryJournal, Runner, ToolCall, tool

    @tool(parallel_safe=True)
    async def wait(name: str) -> str:
        await anyio.sleep_forever()
        return name

    @tool(parallel_safe=True)
    def in_thread(name: str) -> str:
        return name

    async def look(call, signal):
        await asyncio.sleep(0)

    async def around(call, next_):
        return await next_(call)

    async def main(journal, name, in_batch, hooks, steps):
        runner = await Runner([wait, in_thread], journal=journal).__aenter__()
        if hooks:
            runner.pre_execute(look)
            runner.use(around)
        calls = [ToolCall(name, {"name": letter}) for letter in "ab"]
        waiting = runner.start_batch(calls) if in_batch else [asyncio.ensure_future(runner.run(call)) for call in calls]
        for _ in range(steps):
            await asyncio.sleep(0)

    for name, in_batch, hooks, steps in itertools.product(("wait", "in_thread"), (True, False), (True, False), range(14)):
        journal = MemoryJournal()
        asyncio.run(main(journal, name, in_batch, hooks, steps))
        accepted = [record.run_id for record in journal if record.type == "call/recorded"]
        settled = [record.run_id for record in journal if record.type == "call/settled"]
        assert sorted(accepted) == sorted(settled), (name, in_batch, hooks, steps)
        entered = {record.run_id for record in journal if record.type == "call/dispatched"}
        started = {record.run_id for record in journal if record.type == "call/settled" and record.result.started}
        assert started <= entered
    print("done")
""")


@pytest.mark.case("E26")
def test_a_loop_torn_down_before_any_step_of_a_call_leaves_a_result_for_every_call() -> None:
    """A task that is cancelled before its first step never takes it; whoever waited for it waited for ever."""
    argv = [sys.executable, "-W", "error", "-c", TORN_DOWN_AT_ANY_STEP]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


# One call's life.


@pytest.mark.anyio
@pytest.mark.virtual_time
async def test_a_body_left_running_by_a_settle_time_out_is_told_by_its_own_time_limit_and_gives_everything_back() -> None:
    """It was published as aborted, and since it might have been tried again nobody gave its lock and place back."""
    gate = anyio.Event()

    @tool(idempotent=True, retry=RetryPolicy(3, wait_initial=0, wait_max=0), timeout=0.02, resources=lambda _: ["the file"])
    async def hang() -> str:
        with anyio.CancelScope(shield=True):
            while not gate.is_set():
                with contextlib.suppress(anyio.get_cancelled_exc_class()):
                    await gate.wait()
        await anyio.lowlevel.checkpoint()
        return "late"

    async with opened(hang, settle_timeout=0.02) as runner:
        result = await runner.run("hang")
        assert (result.outcome, result.code, result.ended) == ("timed_out", "TIMED_OUT", None)
        assert result.still_running
        assert runner._services is not None
        assert runner._services.leases.held == 1
        gate.set()
        await quiet()
        assert runner._services.leases.held == 0


@pytest.mark.anyio
async def test_a_close_with_a_limit_does_not_list_a_body_that_never_started() -> None:
    @tool
    async def work() -> str:
        return "done"

    for steps in range(12):
        async with opened(work) as runner:
            batch = runner.start_batch([ToolCall("work")])
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            await runner.aclose(limit=0)
            (result,) = await batch
        if not result.started:
            assert result.still_running == ()


@pytest.mark.anyio
async def test_an_abort_after_a_call_was_lost_does_not_become_its_cause() -> None:
    fake = FakeSupervisor(FakeCommand(exit_code=None))
    stop = AbortController()

    async def late(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
        stop.abort("late")

    async with opened(shell, supervisor=fake.made) as runner:
        runner.post_execute(late)
        batch = runner.start_batch([ToolCall("shell", {"command": "x"})], signal=stop.signal)
        process = await fake.prepared()
        await quiet()
        process.lose_keeper()
        (result,) = await batch
    assert (result.outcome, result.code, result.ended) == ("failed", "KEEPER_LOST", "lost")
    assert result.stop is not None
    assert result.stop.phase == "finishing"


@pytest.mark.anyio
async def test_a_thread_that_cannot_be_started_is_a_refusal_and_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    @tool
    def work() -> str:
        return "done"

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with opened(work) as runner:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            first, second = await runner.run_batch([ToolCall("work"), ToolCall("work")])
        for result in (first, second):
            assert (result.outcome, result.code, result.started) == ("rejected", "SPAWN_REFUSED", False)
            assert result.error is not None
            assert "can't start new thread" in result.error.message
        assert (await runner.run("work")).value == "done"


@pytest.mark.anyio
async def test_a_second_question_about_an_expired_grant_holds_no_place_of_the_batch() -> None:
    stage, question = Stage(), anyio.Event()
    asked: list[str] = []

    class Slow:
        async def decide(self, request: ApprovalRequest, signal: AbortSignal) -> Decision:
            asked.append(request.tool)
            if len(asked) > 1:
                await question.wait()
            return Decision.allow()

    async def second(call: ToolCall, signal: AbortSignal) -> None:
        if call.name == "step":
            await until(lambda: len(asked) == 2)

    async with opened(stage.tools, policy=Policy.of(ask=["alone"], default="allow"), approver=Slow()) as runner:
        runner.pre_execute(second)
        assert runner._services is not None
        runner._services.grants._clock = iter([0.0, *[10_000.0] * 1000]).__next__
        batch = runner.start_batch([alone("a"), step("b")])
        await until(lambda: len(asked) == 2)
        await until(lambda: stage.entered == ["b"])  # a question to a person holds nobody up
        stage.let_go()
        await quiet()
        question.set()
        a, b = await batch
    assert (a.value, b.value) == ("a", "b")


# Leases.


@pytest.mark.anyio
async def test_a_lease_granted_in_the_tick_in_which_its_wait_is_cancelled_is_given_back() -> None:
    desk, needs = LeaseDesk(), Needs((), (Place("one", 1),))
    held = await desk.ask(needs, AbortSignal())
    assert held is not None
    box: list[Any] = []

    async def wait() -> None:
        box.append(await desk.ask(needs, AbortSignal()))

    root = TaskRoot()
    task = root.spawn(wait, "waits")
    await all_blocked()
    held.release()
    task.cancel()
    with anyio.fail_after(60):
        await root.wait_empty()
    for lease in box:  # trio may let it through: then it is its owner's
        lease.release()
    assert desk.held == 0


# Child calls.


# Keys.


# Closing.


# Waits for the journal.


# Foreign code that leaves by an interrupt.
