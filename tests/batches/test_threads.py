"""Sync bodies: threads of the runner's own, as many as it was given, entered or not entered and nothing between."""

import threading
import time
from typing import Any

import anyio
import pytest
from batches.stage import assert_never_entered, opened, until
from stillness import quiet

from toolrunner import AbortController, ToolCall, ToolContext, tool
from toolrunner.tools import ToolDefinitionWarning

pytestmark = pytest.mark.anyio


@pytest.mark.case("E25")
async def test_an_abort_while_no_thread_is_free_means_never_entered() -> None:
    controller, go, entered = AbortController(), threading.Event(), list[str]()

    @tool(parallel_safe=True)
    def work(name: str) -> str:
        entered.append(name)
        go.wait(60)
        return name

    async with opened(work, max_threads=2) as runner:
        try:
            batch = runner.start_batch([ToolCall("work", {"name": name}) for name in "abcd"], signal=controller.signal)
            await until(lambda: len(entered) == 2)
            await quiet()
            controller.abort("stop")
            await quiet()
        finally:
            go.set()
        a, b, c, d = await batch
        assert runner._services is not None
        assert runner._services.leases.held == 0
        assert (await runner.run("work", {"name": "again"})).value == "again"
    assert sorted(entered[:2]) == ["a", "b"]
    assert entered[2:] == ["again"]
    for result in (a, b):
        assert (result.outcome, result.started, result.ended) == ("aborted", True, "returned")
        assert {"name": result.value} == result.arguments
    assert_never_entered(c)
    assert_never_entered(d)


@pytest.mark.case("E25")
async def test_forty_stuck_bodies_leave_the_hosts_own_threads_alone() -> None:
    controller, go, entered = AbortController(), threading.Event(), list[int]()

    @tool(parallel_safe=True)
    def stuck(n: int) -> None:
        entered.append(n)
        go.wait(20)

    async with opened(stuck, max_threads=40, max_parallel=40, bound=20) as runner:
        try:
            batch = runner.start_batch([ToolCall("stuck", {"n": n}) for n in range(40)], signal=controller.signal)
            await until(lambda: len(entered) == 40)
            # The loop's default limiter has 40 places, and the runner takes none of them.
            limiter = anyio.to_thread.current_default_thread_limiter()
            assert limiter.borrowed_tokens == 0
            with anyio.fail_after(60):
                assert await anyio.to_thread.run_sync(lambda: "free") == "free"
            controller.abort()
        finally:
            go.set()
        results = await batch
    assert {(result.outcome, result.ended) for result in results} == {("aborted", "returned")}


async def test_an_abort_between_hand_over_and_first_step_is_decided_by_one_read() -> None:
    """Many calls aborted while their threads start: each was entered and says so, or was not and says that."""
    entered: set[int] = set()

    @tool(parallel_safe=True)
    def work(n: int) -> int:
        entered.add(n)
        return n

    async with opened(work, max_parallel=20, bound=30) as runner:
        for round_ in range(20):
            controller = AbortController()
            thread = threading.Timer(round_ * 0.0002, controller.abort)
            calls = [ToolCall("work", {"n": round_ * 100 + n}) for n in range(20)]
            thread.start()
            results = await runner.run_batch(calls, signal=controller.signal)
            thread.join()
            for n, result in enumerate(results):
                assert result.started == (round_ * 100 + n in entered)
                if not result.started:
                    assert_never_entered(result)


async def test_a_sync_body_may_report_and_follow_up_from_its_thread() -> None:
    seen: list[str] = []

    @tool
    def work(ctx: ToolContext[Any]) -> None:
        ctx.output("half\n")
        ctx.progress("half", 1, 2)
        ctx.follow_up({"next": 1})

    async with opened(work) as runner:
        (result,) = await runner.run_batch([ToolCall("work")], on_event=lambda record: seen.append(record.type))
    assert result.follow_up == ({"next": 1},)
    assert seen.index("output") < seen.index("progress") < seen.index("call/ended")


async def test_a_sync_body_past_its_time_limit_is_waited_for_and_timed_out() -> None:
    go = threading.Event()
    with pytest.warns(ToolDefinitionWarning, match="a thread cannot be stopped"):

        @tool(timeout=0.05)
        def slow(ctx: ToolContext[Any]) -> str:
            while not ctx.signal.aborted:
                time.sleep(0.001)
            go.wait(60)
            return "late"

    async with opened(slow) as runner:
        batch = runner.start_batch([ToolCall("slow")])
        await quiet()
        assert not batch._run.done.is_set()
        go.set()
        (result,) = await batch
    assert (result.outcome, result.code, result.started, result.ended, result.value) == (
        "timed_out",
        "TIMED_OUT",
        True,
        "returned",
        "late",
    )
    assert result.effects.state == "unknown"


async def test_threads_are_reused_and_gone_when_the_runner_is_closed() -> None:
    names: set[str] = set()

    @tool
    def work() -> None:
        names.add(threading.current_thread().name)

    async with opened(work) as runner:
        for _ in range(20):
            await runner.run("work")
    assert len(names) == 1
    assert not names & {thread.name for thread in threading.enumerate()}
