"""Time limits of a call: whose signal sees them, and which of two causes is told."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pipeline.bench import (
    RAISED,
    STOPPED,
    SUCCEEDED,
    TIMED_OUT,
    check_never_started,
    effects,
    facts,
    only,
    open_runner,
    stop_of,
    text,
)
from pipeline.limited import SOON, free, signals

from toolrunner import AbortController, AbortError, AbortSignal, ToolCall, ToolContext, ToolError, ToolResult, tool
from toolrunner.facts import EffectState, Evidence, StopPhase
from toolrunner.results import Code, Ended, Outcome
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio


@tool(timeout=60)
async def fast(ctx: ToolContext[Any]) -> str:
    """Return at once, far within the limit."""
    signals.append(ctx.signal)
    return "done"


@tool(timeout=SOON)
async def slow(ctx: ToolContext[Any]) -> str:
    """Sleep over the limit."""
    signals.append(ctx.signal)
    await anyio.sleep_forever()
    return "never"


@pytest.mark.case("D1")
@pytest.mark.virtual_time
async def test_without_a_limit_the_bodys_signal_is_aborted_by_nothing_but_the_caller() -> None:
    caller = AbortController()
    async with open_runner([free]) as runner:
        result = await runner.run("free", signal=caller.signal)
        assert not signals[0].aborted
        caller.abort("enough")
        assert signals[0].reason is not None
        assert (signals[0].reason.source, signals[0].reason.text) == ("caller", "enough")
    assert facts(result) == SUCCEEDED


@pytest.mark.case("D2")
@pytest.mark.virtual_time
async def test_a_tool_that_is_faster_than_its_limit_keeps_its_result_and_its_clock_is_stopped() -> None:
    async with open_runner([fast]) as runner:
        by_tool = await runner.run("fast")
        by_call = await runner.run(ToolCall("fast", timeout=0.2))
        await anyio.sleep(0.25)  # a test of time: past the limit of the second one
        assert not signals[1].aborted
    for result in (by_tool, by_call):
        assert facts(result) == SUCCEEDED
        assert (result.value, result.stop) == ("done", None)


@pytest.mark.case("D3")
@pytest.mark.virtual_time
async def test_with_a_limit_the_body_has_a_signal_of_its_own_that_the_limit_aborts() -> None:
    caller = AbortController()
    async with open_runner([slow]) as runner:
        result = await runner.run("slow", signal=caller.signal)
        assert not caller.signal.aborted
    [body] = signals
    assert body is not caller.signal
    assert body.reason is not None
    assert body.reason.source == "timeout"
    assert facts(result) == TIMED_OUT
    assert stop_of(result) == ("timeout", "the time limit of 0.02 s is over", StopPhase.RUNNING)
    assert effects(result) == (EffectState.UNKNOWN, None)
    assert "ran over its time limit and was stopped" in text(result)
    assert result.retry == "check_first"


@pytest.mark.case("D3")
@pytest.mark.virtual_time
async def test_the_limit_of_the_call_wins_over_the_tools() -> None:
    async with open_runner([fast, slow]) as runner:
        result = await runner.run(ToolCall("slow", timeout=0.01))
    assert stop_of(result)[1] == "the time limit of 0.01 s is over"


@pytest.mark.case("D4")
@pytest.mark.virtual_time
async def test_post_hooks_see_the_callers_signal_and_not_the_limits() -> None:
    seen: list[tuple[bool, Any]] = []
    async with open_runner([slow]) as runner:

        async def post(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
            seen.append((signal.aborted, facts(result)))

        runner.post_execute(post)
        result = await runner.run("slow")
    assert seen == [(False, TIMED_OUT)]
    assert facts(result) == TIMED_OUT


@pytest.mark.case("D5")
@pytest.mark.parametrize("ending", ["cancelled", "AbortError", "reason", "group"])
@pytest.mark.virtual_time
async def test_the_own_limit_gives_timed_out_even_when_the_body_reports_an_abort(ending: str) -> None:
    @tool(timeout=SOON)
    async def report(ctx: ToolContext[Any]) -> None:
        """End by the stop, in different words."""
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class() as cancelled:
            assert ctx.signal.reason is not None
            match ending:
                case "AbortError":
                    raise AbortError(ctx.signal.reason) from None
                case "reason":
                    raise Exception(ctx.signal.reason) from None
                case "group":
                    raise BaseExceptionGroup("two", [cancelled, AbortError(None)]) from None
            raise

    async with open_runner([report]) as runner:
        result = await runner.run("report")
    assert facts(result) == TIMED_OUT
    assert (result.error, stop_of(result)[0]) == (None, "timeout")


@pytest.mark.case("D5")
@pytest.mark.virtual_time
async def test_a_bodys_own_error_at_its_limit_stays_its_own() -> None:
    @tool(timeout=SOON)
    async def refuse(ctx: ToolContext[Any]) -> None:
        """Fail in its own words."""
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            raise ToolError("rolled back", kind="rolled_back") from None

    async with open_runner([refuse]) as runner:
        result = await runner.run("refuse")
    assert facts(result) == RAISED
    assert result.error is not None
    assert (result.error.kind, stop_of(result)[0]) == ("rolled_back", "timeout")


@pytest.mark.case("D5")
async def test_a_thread_that_runs_over_its_limit_and_returns_has_timed_out_with_its_value() -> None:
    with pytest.warns(UserWarning, match="cannot be stopped"):

        @tool(timeout=SOON)
        def over(ctx: ToolContext[Any]) -> str:
            """Wait until the limit is over, then finish the work."""
            gate.wait_blocking()
            return "late but done"

    async with open_runner([over]) as runner:
        gate = Gate()
        batch = runner.start_batch([ToolCall("over")])
        await gate.reached()
        state = batch._run.states[0]
        await state.body_signal.wait()
        gate.open()
        result = only(await batch.results())
    assert facts(result) == (Outcome.TIMED_OUT, Code.TIMED_OUT, True, Ended.RETURNED)
    assert (result.value, stop_of(result)[0]) == ("late but done", "timeout")
    assert effects(result) == (EffectState.COMPLETED, Evidence.ASSUMED)
    assert not result.is_error
    assert "finished before it could be stopped" in text(result)


@tool(timeout=SOON)
async def held(ctx: ToolContext[Any]) -> str:
    """Hold the cancel back until the gate opens."""
    signals.append(ctx.signal)
    with ctx.cleanup():
        await gates[-1].wait()
    await anyio.lowlevel.checkpoint()
    return "never"


gates: list[Gate] = []


@pytest.mark.case("D6")
@pytest.mark.virtual_time
async def test_the_caller_first_and_the_limit_second_is_aborted() -> None:
    async with open_runner([held]) as runner:
        gates.append(Gate())
        caller = AbortController()
        batch = runner.start_batch([ToolCall("held", timeout=0.05)], signal=caller.signal)
        await gates[-1].reached()
        caller.abort("enough")
        await anyio.sleep(0.1)  # a test of time: past the limit
        gates[-1].open()
        result = only(await batch.results())
    assert facts(result) == STOPPED
    assert stop_of(result) == ("caller", "enough", StopPhase.RUNNING)


@pytest.mark.case("D7")
@pytest.mark.virtual_time
async def test_the_limit_first_and_the_caller_second_is_timed_out() -> None:
    async with open_runner([held]) as runner:
        gates.append(Gate())
        caller = AbortController()
        batch = runner.start_batch([ToolCall("held")], signal=caller.signal)
        await gates[-1].reached()
        await signals[-1].wait()
        caller.abort("enough")
        gates[-1].open()
        result = only(await batch.results())
    assert facts(result) == TIMED_OUT
    assert stop_of(result)[0] == "timeout"


@pytest.mark.case("D7")
@pytest.mark.virtual_time
async def test_the_limit_first_and_an_abort_while_a_post_hook_waits_is_timed_out() -> None:
    async with open_runner([slow]) as runner:
        gate = Gate()

        async def post(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
            await gate.wait()

        runner.post_execute(post)
        caller = AbortController()
        batch = runner.start_batch([ToolCall("slow")], signal=caller.signal)
        await gate.reached()
        caller.abort("enough")
        gate.open()
        result = only(await batch.results())
    assert facts(result) == TIMED_OUT
    assert stop_of(result)[0] == "timeout"


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "1", 10**400], ids=range(7))
@pytest.mark.virtual_time
async def test_a_time_limit_that_is_none_is_refused_before_anything_runs(timeout: Any) -> None:
    async with open_runner([free]) as runner:
        result = await runner.run(ToolCall("free", timeout=timeout))
    check_never_started(result, (Outcome.REJECTED, Code.INVALID_ARGUMENTS, False, None))
    assert signals == []
