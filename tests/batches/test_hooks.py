"""Hooks and wrappers that misbehave: bounded, refused, awaited; never a lost call."""

from typing import Any

import anyio
import pytest
from batches.stage import Refusing, Stage, opened, step, text
from stillness import quiet

from toolrunner import AbortController, ToolCall, ToolResult
from toolrunner.abort import AbortSignal

pytestmark = pytest.mark.anyio


@pytest.mark.case("E27")
@pytest.mark.parametrize("swallows", [False, True], ids=["obeys its cancel", "swallows its cancel"])
@pytest.mark.virtual_time
async def test_a_hook_that_never_returns_is_an_error_at_its_bound_and_nothing_is_dispatched(swallows: bool) -> None:
    stage, go, left = Stage(), anyio.Event(), list[str]()

    async def hang(call: ToolCall, _: AbortSignal) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            if swallows:
                with anyio.CancelScope(shield=True):
                    await go.wait()
            left.append("left")

    async with opened(stage.tools, hook_timeout=0.05) as runner:
        runner.pre_execute(hang)
        try:
            result = await runner.run(step("a"))
        finally:
            go.set()
        await quiet()
    assert stage.log == []
    assert left == ["left"]
    assert (result.outcome, result.code, result.started, result.ended) == ("rejected", "HOOK_ERROR", False, None)
    assert result.error is not None
    assert (result.error.kind, result.error.message) == ("hook_timeout", "hook 'hang' did not answer within 0.05 s")
    assert (result.effects.evidence, result.retry) == ("not_started", "safe")
    assert "hang" in text(result)


@pytest.mark.case("E27")
@pytest.mark.virtual_time
async def test_a_post_hook_that_never_returns_costs_no_fact_of_the_call() -> None:
    stage = Stage()
    stage.end("a", "b")

    async def hang(call: ToolCall, result: ToolResult, _: AbortSignal) -> None:
        if call.call_id == "a":
            await anyio.sleep_forever()

    async with opened(stage.tools, hook_timeout=0.05) as runner:
        runner.post_execute(hang)
        a, b = await runner.run_batch([step("a"), step("b")])
    assert (a.outcome, a.code, a.started, a.ended, a.value) == ("failed", "HOOK_ERROR", True, "returned", "a")
    assert a.follow_up == ("of a",)
    assert a.error is not None
    assert a.error.kind == "hook_timeout"
    assert (a.effects.state, a.effects.evidence) == ("completed", "assumed")
    assert "not started" not in text(a)
    assert (b.outcome, b.value) == ("succeeded", "b")


@pytest.mark.case("E27")
async def test_a_wrapper_that_goes_on_twice_is_refused_the_second_time_and_the_body_runs_once() -> None:
    stage, raised = Stage(), list[str]()
    stage.end("a", "b")

    async def twice(call: ToolCall, next_: Any) -> Any:
        first = await next_(call)
        try:
            await next_(call)
        except Exception as error:
            raised.append(str(error))
            raise
        return first

    async with opened(stage.tools) as runner:
        take_back = runner.use(twice)
        result = await runner.run(step("a"))
        take_back()
        assert (await runner.run(step("b"))).outcome == "succeeded"
    assert stage.entered == ["a", "b"]
    assert raised == ["next() was called a second time; a body is started once"]
    assert (result.outcome, result.code, result.started, result.ended, result.value) == (
        "failed",
        "HOOK_ERROR",
        True,
        "returned",
        "a",
    )
    assert result.error is not None
    assert "called a second time" in result.error.message


@pytest.mark.case("E27")
async def test_a_wrapper_that_returns_while_its_body_runs_is_awaited_with_it() -> None:
    stage = Stage()

    async with opened(stage.tools) as runner, anyio.create_task_group() as group:

        async def early(call: ToolCall, next_: Any) -> Any:
            group.start_soon(next_, call)
            await stage.started("a")
            return "the wrapper's own answer"

        runner.use(early)
        batch = runner.start_batch([step("a")])
        await stage.started("a")
        await quiet()
        assert not batch._run.done.is_set()
        stage.end("a")
        (result,) = await batch
    assert stage.log == ["+a", "-a"]
    assert (result.started, result.ended) == (True, "returned")
    assert result.follow_up == ("of a",)


@pytest.mark.case("E27")
async def test_a_next_that_comes_after_its_wrapper_had_returned_starts_nothing() -> None:
    stage, kept, raised = Stage(), list[Any](), list[str]()
    stage.end("a")

    async def keep(call: ToolCall, next_: Any) -> Any:
        kept.append((next_, call))
        return "answered"

    async with opened(stage.tools) as runner:
        runner.use(keep)
        result = await runner.run(step("a"))
        next_, call = kept[0]
        try:
            await next_(call)
        except Exception as error:
            raised.append(str(error))
    assert stage.entered == []
    assert raised == ["next() was called after its wrapper had returned"]
    assert (result.outcome, result.started, result.value) == ("succeeded", False, "answered")


async def test_a_bug_of_ours_inside_a_wrapper_is_raised_whatever_the_wrapper_makes_of_it() -> None:
    stage = Stage()

    async def hide(call: ToolCall, next_: Any) -> Any:
        try:
            return await next_(call)
        except RuntimeError:
            return "all is well"

    async with opened(stage.tools, journal=Refusing(lambda record: record.type == "call/dispatched")) as runner:
        runner.use(hide)
        batch = runner.start_batch([step("a")])
        with pytest.raises(RuntimeError, match="bug at call/dispatched"):
            await batch
        with pytest.raises(RuntimeError, match="bug at call/dispatched"):
            await runner.run(step("b"))
        result = runner.result(batch.run_ids[0])
    assert stage.log == []
    assert (result.outcome, result.code, result.started) == ("aborted", "ABORTED_BEFORE_DISPATCH", False)


async def test_an_abort_while_a_hook_hangs_closes_the_call_as_soon_as_the_hook_lets_go() -> None:
    stage, controller, inside = Stage(), AbortController(), anyio.Event()

    async def listen(call: ToolCall, signal: AbortSignal) -> None:
        inside.set()
        await signal.wait()

    async with opened(stage.tools) as runner:
        runner.pre_execute(listen)
        batch = runner.start_batch([step("a"), step("b")], signal=controller.signal)
        await inside.wait()
        controller.abort("stop")
        results = await batch
    assert stage.log == []
    assert {(result.outcome, result.code) for result in results} == {("aborted", "ABORTED_BEFORE_DISPATCH")}
