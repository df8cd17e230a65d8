"""The end of a runner: closed, left in another task, its loop torn down, its host forked. True results, or RunnerClosed."""

import os
import threading
from typing import Any

import anyio
import pytest
from batches.stage import BOUND, Stage, alone, assert_never_entered, opened, step, stubborn, text
from stillness import quiet

from toolrunner import AbortSignal, MemoryJournal, Runner, ToolCall, shell, tool
from toolrunner.errors import ConfigError, RunnerClosed
from toolrunner.results import Code, Outcome

pytestmark = pytest.mark.anyio


@pytest.mark.case("E16")
async def test_closing_with_calls_in_flight_stops_and_drains_them_and_takes_no_more() -> None:
    stage, closed = Stage(), anyio.Event()
    with anyio.fail_after(60):
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
    with anyio.fail_after(60):
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
    with anyio.fail_after(60):
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
    with anyio.fail_after(60):
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
    with anyio.fail_after(60):
        async with Runner([]) as entered:
            with pytest.raises(RunnerClosed, match="entered before"):
                await entered.__aenter__()
            assert (await entered.run("x")).code == "UNKNOWN_TOOL"


@pytest.mark.case("E26")
async def test_a_runner_may_be_left_in_another_task_than_it_was_entered_in() -> None:
    stage, made, used, left = Stage(), list[Runner](), anyio.Event(), anyio.Event()
    with anyio.fail_after(60):

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


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), -1, "soon", True])
async def test_a_limit_that_is_none_closes_nothing(limit: Any) -> None:
    stage = Stage()
    stage.end("a")
    async with opened(stage.tools) as runner:
        with pytest.raises(ConfigError, match=r"limit is .*; expected a finite number of seconds, or None"):
            await runner.aclose(limit)
        assert (await runner.run(step("a"))).value == "a"
