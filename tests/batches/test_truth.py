"""What a result says of a call that was stopped: facts kept, and no word more than is known."""

import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import anyio
import pytest
from batches.stage import Stage, alone, assert_claims_no_more_than_known, opened, step, text, until
from stillness import quiet

from toolrunner import AbortController, AbortError, ToolCall, ToolContext, ToolError, ToolResult, tool
from toolrunner.abort import AbortSignal
from toolrunner.facts import Json
from toolrunner.records import Record, StillRunningReport

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


@pytest.mark.case("E13")
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "undeclared"])
async def test_a_sync_body_that_cannot_be_stopped_is_waited_for_reported_and_its_write_not_denied(declared: bool) -> None:
    controller, working, go, written = AbortController(), threading.Event(), threading.Event(), list[str]()
    reports: list[Record] = []

    @tool
    def slow_write(ctx: ToolContext[Any]) -> str:
        working.set()
        go.wait()
        if declared:
            with ctx.effect("file", "notes.txt"):
                written.append("notes.txt")
        else:
            written.append("notes.txt")
        return "written"

    def observe(record: Record) -> None:
        if record.type == "still_running":
            reports.append(record)

    async with opened(slow_write) as runner:
        batch = runner.start_batch([ToolCall("slow_write")], signal=controller.signal, on_event=observe)
        try:
            await until(working.is_set)
            controller.abort("stop")
            await until(lambda: len(reports) >= 2)
            assert written == []
        finally:
            go.set()
        (result,) = await batch
    assert written == ["notes.txt"]
    assert (result.outcome, result.code, result.started, result.ended) == ("aborted", "ABORTED", True, "returned")
    assert (result.value, result.still_running) == ("written", ())
    assert result.effects.state == "completed"
    assert result.effects.evidence == ("reported" if declared else "assumed")
    said = text(result)
    assert "written" in said
    assert "The call finished before it could be stopped." in said
    assert ("Its change was made: notes.txt." in said) is declared
    assert ("assume that it took effect" in said) is not declared
    assert_claims_no_more_than_known(result)
    first, second = reports[:2]
    assert isinstance(first, StillRunningReport)
    assert isinstance(second, StillRunningReport)
    assert [(one.what, one.kind) for one in first.what] == [("slow_write", "body")]
    assert 0 < first.waited < second.waited


@pytest.mark.case("E30")
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("declared", [False, True], ids=["undeclared", "declared"])
async def test_a_body_that_saw_the_signal_and_returned_half_way_is_never_completed(sync: bool, declared: bool) -> None:
    controller, working = AbortController(), threading.Event()

    @tool
    async def copy(ctx: ToolContext[Any]) -> str:
        if declared:
            async with ctx.effect("file", "first.txt"):
                pass
        working.set()
        with ctx.cleanup():
            await ctx.signal.wait()
        return "as if nothing were"

    @tool(name="copy")
    def copy_in_thread(ctx: ToolContext[Any]) -> str:
        if declared:
            with ctx.effect("file", "first.txt"):
                pass
        working.set()
        while not ctx.signal.aborted:
            time.sleep(0.001)
        return "as if nothing were"

    async with opened(copy_in_thread if sync else copy) as runner:
        batch = runner.start_batch([ToolCall("copy")], signal=controller.signal)
        await until(working.is_set)
        controller.abort()
        (result,) = await batch
    assert (result.outcome, result.ended, result.value) == ("aborted", "returned", "as if nothing were")
    assert result.effects.state == ("partial" if declared else "unknown")
    assert "check before you repeat it" in text(result)
    assert_claims_no_more_than_known(result)


@pytest.mark.case("E30")
async def test_a_body_that_swallows_its_cancel_and_returns_is_never_completed() -> None:
    controller, working = AbortController(), anyio.Event()

    @tool
    async def copy() -> str:
        working.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            pass
        return "swallowed"

    async with opened(copy) as runner:
        batch = runner.start_batch([ToolCall("copy")], signal=controller.signal)
        await working.wait()
        controller.abort()
        (result,) = await batch
    assert (result.outcome, result.ended, result.value) == ("aborted", "returned", "swallowed")
    assert (result.effects.state, result.effects.evidence) == ("unknown", None)
    assert_claims_no_more_than_known(result)


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


async def test_settle_timeout_publishes_a_body_that_runs_on_and_keeps_what_it_holds() -> None:
    controller, working, go = AbortController(), threading.Event(), threading.Event()

    @tool(resources=lambda _: ["db"])
    def stuck() -> str:
        working.set()
        go.wait()
        return "at last"

    @tool(resources=lambda _: ["db"])
    async def after() -> str:
        return "mine"

    async with opened(stuck, after, settle_timeout=0.05) as runner:
        try:
            batch = runner.start_batch([ToolCall("stuck")], signal=controller.signal)
            await until(working.is_set)
            controller.abort("stop")
            (result,) = results = await batch
            waiting = runner.start_batch([ToolCall("after")])
            await quiet()
            # The lock is the running body's, published or not.
            assert runner._services is not None
            assert runner._services.leases.held == 1
        finally:
            go.set()
        assert (await waiting)[0].value == "mine"
        assert runner.result(result.run_id) is result
    assert (result.outcome, result.code, result.started, result.ended) == ("aborted", "ABORTED", True, None)
    assert result.still_running is not None
    assert [(one.what, one.kind) for one in result.still_running] == [("stuck", "body")]
    assert results.still_running == result.still_running
    assert (result.effects.state, result.effects.evidence) == ("unknown", None)
    assert "The call was told to stop and is still running." in text(result)
    assert_claims_no_more_than_known(result)


@pytest.mark.virtual_time
async def test_without_settle_timeout_a_stuck_body_is_waited_for() -> None:
    stage, controller = Stage(), AbortController()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([ToolCall("stubborn", {"name": "a"})], signal=controller.signal)
        await stage.started("a")
        controller.abort()
        with anyio.move_on_after(0.2) as scope:
            await batch._run.done.wait()
        assert scope.cancelled_caught
        stage.end("a")
        assert (await batch)[0].still_running == ()


async def test_a_single_call_and_a_batch_of_one_say_the_same() -> None:
    stage = Stage()
    stage.end("a", "b")
    async with opened(stage.tools) as runner:
        single = await runner.run(step("a"))
        (batched,) = await runner.run_batch([step("a")])
        other = await runner.run(alone("b"))
    assert (single.outcome, single.value, single.follow_up) == (batched.outcome, batched.value, batched.follow_up)
    assert other.value == "b"
