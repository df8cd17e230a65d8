"""What a result says of a call that was stopped: facts kept, and no word more than is known."""

import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import anyio
import pytest
from batches.stage import Stage, alone, assert_claims_no_more_than_known, opened, step, text, until

from toolrunner import AbortController, AbortError, ToolCall, ToolContext, ToolError, ToolResult, tool
from toolrunner.abort import AbortSignal
from toolrunner.facts import Json

pytestmark = pytest.mark.anyio


@pytest.mark.case("E1")
async def test_a_write_that_was_done_before_the_abort_is_admitted() -> None:
    controller, finishing = AbortController(), anyio.Event()

    @tool
    async def write(ctx: ToolContext[Any]) -> dict[str, int]:
        async with ctx.effect("file", "notes.txt") as effect:
            effect.receipt = "rev 7"
        return {"bytes": 12}

    async def after(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
        finishing.set()
        await signal.wait()

    async with opened(write) as runner:
        runner.post_execute(after)
        batch = runner.start_batch([ToolCall("write")], signal=controller.signal)
        await finishing.wait()
        controller.abort("changed my mind")
        (result,) = await batch
    assert (result.outcome, result.code, result.started, result.ended) == ("aborted", "ABORTED", True, "returned")
    assert result.value == {"bytes": 12}
    assert (result.effects.state, result.effects.evidence) == ("completed", "reported")
    assert [(record.target, record.stage, record.receipt) for record in result.effects.records] == [
        ("notes.txt", "applied", "rev 7")
    ]
    assert result.stop is not None
    assert (result.stop.phase, result.stop.reason, result.stop.delivered_at) == ("finishing", "changed my mind", None)
    assert "The call finished before it could be stopped." in text(result)
    assert "Its change was made: notes.txt." in text(result)
    assert result.content_for_model()[0] == Json({"bytes": 12})
    assert (result.is_error, result.retry, result.still_running) == (False, "no", ())
    assert_claims_no_more_than_known(result)


@pytest.mark.case("E2")
async def test_a_write_that_was_cut_is_unknown_and_asks_for_a_look() -> None:
    controller, writing = AbortController(), anyio.Event()

    @tool
    async def write(ctx: ToolContext[Any]) -> str:
        async with ctx.effect("file", "notes.txt"):
            writing.set()
            await anyio.sleep_forever()
        return "done"

    async with opened(write) as runner:
        batch = runner.start_batch([ToolCall("write")], signal=controller.signal)
        await writing.wait()
        controller.abort()
        (result,) = await batch
    assert (result.outcome, result.code, result.ended) == ("aborted", "ABORTED", "stopped")
    assert result.effects.state == "unknown"
    assert [(record.target, record.stage) for record in result.effects.records] == [("notes.txt", "unknown")]
    assert (result.retry, result.is_error) == ("check_first", True)
    assert "It may have taken effect; check before you repeat it." in text(result)
    assert_claims_no_more_than_known(result)


async def test_one_write_done_and_the_next_not_begun_is_partial() -> None:
    controller, between = AbortController(), anyio.Event()

    @tool
    async def write(ctx: ToolContext[Any]) -> None:
        async with ctx.effect("file", "first.txt"):
            pass
        between.set()
        await anyio.sleep_forever()

    async with opened(write) as runner:
        batch = runner.start_batch([ToolCall("write")], signal=controller.signal)
        await between.wait()
        controller.abort()
        (result,) = await batch
    assert (result.effects.state, result.effects.evidence) == ("partial", "reported")
    assert "At least part of its changes were made: first.txt; check before you repeat it." in text(result)
    assert result.retry == "check_first"


async def test_a_read_only_tool_that_is_stopped_had_no_effects_and_may_be_repeated() -> None:
    controller, stage = AbortController(), Stage()

    @tool(read_only=True)
    async def read(name: str) -> str:
        return await stage.play(name)

    async with opened(read) as runner:
        batch = runner.start_batch([ToolCall("read", {"name": "a"})], signal=controller.signal)
        await stage.started("a")
        controller.abort()
        (result,) = await batch
    assert (result.outcome, result.effects.state, result.effects.evidence) == ("aborted", "none", "declared")
    assert result.retry == "safe"
    assert "was stopped while it ran" in text(result)


@pytest.mark.case("E4")
async def test_a_bodys_own_error_after_the_abort_is_the_outcome_and_the_stop_is_told_too() -> None:
    controller, working = AbortController(), anyio.Event()

    @tool
    async def work(ctx: ToolContext[Any]) -> None:
        async with ctx.effect("http", "POST /order") as effect:
            effect.receipt = "order 5"
        working.set()
        try:
            await anyio.sleep_forever()
        finally:
            raise ToolError("the connection broke", kind="network")

    async with opened(work) as runner:
        batch = runner.start_batch([ToolCall("work")], signal=controller.signal)
        await working.wait()
        controller.abort("stop")
        (result,) = await batch
    assert (result.outcome, result.code, result.started, result.ended) == ("failed", "TOOL_ERROR", True, "raised")
    assert result.error is not None
    assert (result.error.kind, result.error.message) == ("network", "the connection broke")
    assert result.stop is not None
    assert (result.stop.source, result.stop.reason, result.stop.phase) == ("caller", "stop", "running")
    assert result.stop.requested_at
    assert result.stop.delivered_at
    assert result.stop.ended_at
    assert (result.effects.state, result.effects.evidence) == ("partial", "reported")
    assert "POST /order" in text(result)
    assert "the connection broke" in text(result)
    assert_claims_no_more_than_known(result)


RAW_REASONS: dict[str, Callable[[AbortSignal], BaseException]] = {
    "the error": lambda signal: AbortError(signal.reason),
    "the object": lambda signal: Exception(signal.reason),
    "the text": lambda signal: Exception(signal.reason.text if signal.reason else ""),
    "None": lambda _: Exception(None),
    "nothing": lambda _: Exception(),
    "a group of them": lambda signal: ExceptionGroup("two", [AbortError(signal.reason), Exception(signal.reason)]),
}


@pytest.mark.case("E5")
@pytest.mark.parametrize("raised", RAW_REASONS.values(), ids=RAW_REASONS)
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_the_bare_reason_raised_by_a_body_is_an_abort(raised: Callable[[AbortSignal], BaseException], sync: bool) -> None:
    controller, working = AbortController(), threading.Event()

    @tool
    async def work(ctx: ToolContext[Any]) -> None:
        working.set()
        with ctx.cleanup():
            await ctx.signal.wait()
        raise raised(ctx.signal)

    @tool(name="work")
    def work_in_thread(ctx: ToolContext[Any]) -> None:
        working.set()
        while not ctx.signal.aborted:
            time.sleep(0.001)
        raise raised(ctx.signal)

    async with opened(work_in_thread if sync else work) as runner:
        batch = runner.start_batch([ToolCall("work")], signal=controller.signal)
        await until(working.is_set)
        controller.abort("stop it")
        (result,) = await batch
    assert (result.outcome, result.code, result.started, result.ended) == ("aborted", "ABORTED", True, "stopped")
    assert result.error is None
    assert result.effects.state == "unknown"
    assert "was stopped while it ran" in text(result)
    assert_claims_no_more_than_known(result)


async def test_the_same_exceptions_without_an_abort_are_the_bodys_own_errors() -> None:
    @tool
    async def work() -> None:
        raise AbortError(None)

    @tool
    async def plain() -> None:
        raise Exception

    async with opened(work, plain) as runner:
        for name in ("work", "plain"):
            result = await runner.run(name)
            assert (result.outcome, result.code, result.ended, result.stop) == ("failed", "TOOL_ERROR", "raised", None)


@pytest.mark.case("E21")
@pytest.mark.parametrize("read_only", [True, False], ids=["reading", "writing"])
async def test_the_same_call_twice_without_a_key_runs_twice(read_only: bool) -> None:
    ran: list[str] = []

    @tool(read_only=read_only)
    async def look(path: str) -> int:
        ran.append(path)
        return len(ran)

    async with opened(look) as runner:
        one, two = await runner.run_batch([ToolCall("look", {"path": "p"}), ToolCall("look", {"path": "p"})])
        three = await runner.run("look", {"path": "p"})
    assert ran == ["p", "p", "p"]
    assert [one.value, two.value, three.value] == [1, 2, 3]
    assert not any(result.replayed for result in (one, two, three))


WHO: ContextVar[str] = ContextVar("who", default="nobody")


@pytest.mark.case("E28")
async def test_the_submitters_context_variables_are_seen_in_bodies_and_hooks() -> None:
    seen: dict[str, str] = {}

    def note(where: str) -> None:
        seen[where] = WHO.get()

    @tool(parallel_safe=True)
    async def in_task() -> None:
        note("async body")
        WHO.set("the body")

    @tool(parallel_safe=True)
    def in_thread() -> None:
        note("sync body")
        assert threading.current_thread() is not threading.main_thread()
        WHO.set("the body")

    async def before(call: ToolCall, _: AbortSignal) -> None:
        note(f"pre {call.name}")

    async def after(call: ToolCall, _: ToolResult, __: AbortSignal) -> None:
        note(f"post {call.name}")

    async def wrap(call: ToolCall, next_: Any) -> Any:
        note(f"wrapper {call.name}")
        return await next_(call)

    def guard(call: ToolCall) -> None:
        note(f"guard {call.name}")

    async with opened(in_task, in_thread) as runner:
        runner.pre_execute(before)
        runner.post_execute(after)
        runner.use(wrap)
        runner.guard(guard)
        WHO.set("ann")
        batch = runner.start_batch([ToolCall("in_task"), ToolCall("in_thread")])
        WHO.set("somebody later")
        await batch
        assert set(seen.values()) == {"ann"}
        assert len(seen) == 2 + 4 * 2
        # What a body sets is its own, and single calls are no different.
        assert WHO.get() == "somebody later"
        seen.clear()
        await runner.run("in_task")
        await runner.run("in_thread")
        assert set(seen.values()) == {"somebody later"}
        assert len(seen) == 2 + 4 * 2


async def test_a_single_call_and_a_batch_of_one_say_the_same() -> None:
    stage = Stage()
    stage.end("a", "b")
    async with opened(stage.tools) as runner:
        single = await runner.run(step("a"))
        (batched,) = await runner.run_batch([step("a")])
        other = await runner.run(alone("b"))
    assert (single.outcome, single.value, single.follow_up) == (batched.outcome, batched.value, batched.follow_up)
    assert other.value == "b"
