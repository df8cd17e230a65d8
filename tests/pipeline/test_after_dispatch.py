"""Aborts that find a started body, and those that come after it: nothing the call produced is lost, and nothing is denied."""

from typing import Any

import anyio
import pytest
from pipeline.bench import (
    FINISHED_FIRST,
    HOOK_FAILED_AFTER,
    RAISED,
    STOPPED,
    WRAPPER_FAILED_BEFORE,
    Coded,
    check_never_started,
    check_stopped_early,
    effects,
    facts,
    only,
    open_runner,
    stop_of,
    stopped_at,
    text,
    types_of,
)
from pipeline.writing import COMPLETED, WRITE, check_finished_first, check_write_is_kept, write
from stillness import all_blocked

from toolrunner import AbortController, MemoryJournal, Reply, ToolCall, ToolContext, ToolError, tool
from toolrunner.errors import NotSettled
from toolrunner.facts import EffectStage, EffectState, Evidence, StopPhase
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio


@pytest.mark.case("T7")
async def test_an_abort_while_a_wrapper_still_waits_keeps_everything_of_the_body() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def wrap(call: ToolCall, go_on: Any) -> Reply:
            result = await go_on(call)
            await gate.wait()
            return Reply(result.value, result.content, (*result.follow_up, {"from": "wrapper"}))

        runner.use(wrap)
        result = await stopped_at(runner, gate, WRITE)
    check_finished_first(result)
    assert result.follow_up == ({"from": "body"}, {"from": "wrapper"})


@pytest.mark.case("T9")
@pytest.mark.parametrize("went_on", [True, False])
async def test_a_coded_error_of_a_wrapper_outranks_the_abort(went_on: bool) -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def wrap(call: ToolCall, go_on: Any) -> None:
            if went_on:
                await go_on(call)
            await gate.wait()
            raise Coded("no credit left")

        runner.use(wrap)
        result = await stopped_at(runner, gate, WRITE)
    assert result.error is not None
    assert (result.error.kind, "no credit left" in result.error.message) == ("quota", True)
    if went_on:
        assert facts(result) == HOOK_FAILED_AFTER
        check_write_is_kept(result)
    else:
        check_never_started(result, WRAPPER_FAILED_BEFORE)
    assert stop_of(result)[2] == (StopPhase.FINISHING if went_on else StopPhase.BEFORE_DISPATCH)


@pytest.mark.case("T9")
async def test_a_coded_error_after_a_refused_dispatch_outranks_the_abort_too() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def wrap(call: ToolCall, go_on: Any) -> None:
            await gate.wait()
            check_stopped_early(await go_on(call))
            raise Coded("no credit left")

        runner.use(wrap)
        result = await stopped_at(runner, gate, WRITE)
    check_never_started(result, WRAPPER_FAILED_BEFORE)
    assert result.error is not None
    assert result.error.kind == "quota"
    assert stop_of(result) == ("caller", "enough", StopPhase.BEFORE_DISPATCH)


@pytest.mark.case("T9")
async def test_a_wrapper_that_only_hands_the_abort_on_has_not_failed() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()
        stop = AbortController()

        async def wrap(call: ToolCall, go_on: Any) -> None:
            await go_on(call)
            await gate.wait()
            stop.signal.raise_if_aborted()

        runner.use(wrap)
        batch = runner.start_batch([WRITE], signal=stop.signal)
        await gate.reached()
        stop.abort("enough")
        gate.open()
        check_finished_first(only(await batch.results()))


@pytest.mark.case("T10")
async def test_a_body_that_sees_the_abort_and_fails_in_its_own_words_keeps_its_code() -> None:
    @tool
    async def refuse(ctx: ToolContext[Any]) -> None:
        """Fail when told to stop."""
        try:
            await gate.wait()
        except anyio.get_cancelled_exc_class():
            assert ctx.signal.aborted
            raise ToolError("half the pages were sent", kind="half_sent") from None

    async with open_runner([refuse]) as runner:
        gate = Gate()
        result = await stopped_at(runner, gate, ToolCall("refuse"))
    assert facts(result) == RAISED
    assert result.error is not None
    assert (result.error.kind, result.error.message) == ("half_sent", "half the pages were sent")
    assert stop_of(result) == ("caller", "enough", StopPhase.RUNNING)
    assert result.stop is not None
    assert result.stop.delivered_at is not None
    assert result.stop.ended_at is not None
    assert effects(result) == (EffectState.UNKNOWN, None)
    assert "It may have taken effect" in text(result)
    assert result.retry == "check_first"


@pytest.mark.case("T14")
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_a_body_that_ignores_the_abort_keeps_its_result_open_until_it_is_over(kind: str) -> None:
    @tool(name="stubborn")
    async def in_task(ctx: ToolContext[Any]) -> dict[str, int]:
        """Ignore the cancel."""
        async with ctx.effect("file", "first"):
            pass
        ctx.follow_up("kept")
        with ctx.cleanup():
            await gate.wait()
        return {"lines": 3}

    @tool(name="stubborn")
    def in_thread(ctx: ToolContext[Any]) -> dict[str, int]:
        """Never look at the signal."""
        with ctx.effect("file", "first"):
            pass
        ctx.follow_up("kept")
        gate.wait_blocking()
        return {"lines": 3}

    journal = MemoryJournal()
    async with open_runner([in_task if kind == "async" else in_thread], journal=journal) as runner:
        gate = Gate()
        stop = AbortController()
        batch = runner.start_batch([ToolCall("stubborn")], signal=stop.signal)
        await gate.reached()
        stop.abort("enough")
        await all_blocked()
        assert types_of(journal)[-2:] == ["call/stop_requested", "call/stop_delivered"]
        with pytest.raises(NotSettled):
            runner.result(batch.run_ids[0])
        gate.open()
        result = only(await batch.results())
    assert facts(result) == FINISHED_FIRST
    assert (result.value, result.follow_up) == ({"lines": 3}, ("kept",))
    # The cancel came to the task as it left its block, so nobody knows whether more was to follow.
    assert effects(result) == (COMPLETED if kind == "sync" else (EffectState.PARTIAL, Evidence.REPORTED))
    assert stop_of(result) == ("caller", "enough", StopPhase.RUNNING)
    assert result.stop is not None
    assert result.stop.delivered_at is not None
    assert result.stop.ended_at is not None
    assert result.stop.requested_at <= result.stop.delivered_at <= result.stop.ended_at
    assert (result.still_running, result.is_error) == ((), False)
    assert result.content_for_model()[0] == result.content[0]
    assert "The call finished before it could be stopped." in text(result)


async def test_a_body_that_gives_way_is_stopped_and_its_announced_write_stays_open() -> None:
    @tool
    async def half(ctx: ToolContext[Any]) -> None:
        """Stop between announcing a write and confirming it."""
        async with ctx.effect("file", "done"):
            pass
        async with ctx.effect("file", "open"):
            await gate.wait()

    async with open_runner([half]) as runner:
        gate = Gate()
        result = await stopped_at(runner, gate, ToolCall("half"))
    assert facts(result) == STOPPED
    assert effects(result) == (EffectState.UNKNOWN, Evidence.REPORTED)
    assert [(record.target, record.stage) for record in result.effects.records] == [
        ("done", EffectStage.APPLIED),
        ("open", EffectStage.UNKNOWN),
    ]
    assert result.is_error
    assert "It may have taken effect; check before you repeat it." in text(result)
    assert result.retry == "check_first"
