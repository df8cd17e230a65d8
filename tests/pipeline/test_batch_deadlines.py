"""Deadlines of a batch: what had not started never does, what runs is stopped, what is done keeps its value."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pipeline.bench import FINISHED_FIRST, SUCCEEDED, TIMED_OUT, check_never_started, facts, only, open_runner, stop_of, text
from pipeline.limited import SOON, free, signals

from toolrunner import AbortSignal, ToolCall, ToolContext, ToolResult, tool
from toolrunner.facts import StopPhase
from toolrunner.results import Code, Ended, Outcome
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio


def check_missed(result: ToolResult) -> None:
    check_never_started(result, (Outcome.TIMED_OUT, Code.ABORTED_BEFORE_DISPATCH, False, None))
    assert stop_of(result) == ("timeout", "the deadline of 0.02 s is over", StopPhase.BEFORE_DISPATCH)
    assert (result.retry, signals) == ("safe", [])
    assert "deadline" in text(result)


@pytest.mark.virtual_time
async def test_a_batchs_deadline_during_a_pre_hook_means_that_nothing_started() -> None:
    async with open_runner([free]) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> None:
            await signal.wait()

        runner.pre_execute(pre)
        check_missed(only(await runner.run_batch([ToolCall("free")], deadline=SOON)))


@pytest.mark.virtual_time
async def test_a_batchs_deadline_during_a_wrapper_means_that_nothing_started() -> None:
    async with open_runner([free]) as runner:
        gate = Gate()

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            await gate.wait()
            return await go_on(call)

        runner.use(wrap)
        batch = runner.start_batch([ToolCall("free")], deadline=SOON)
        await batch._run.signal.wait()
        gate.open()
        check_missed(only(await batch.results()))


@pytest.mark.virtual_time
async def test_a_batchs_deadline_during_the_wait_for_a_lock_means_that_nothing_started() -> None:
    @tool(resources=lambda arguments: ["one"])
    async def locked(name: str, ctx: ToolContext[Any]) -> str:
        """Hold a lock."""
        if name == "holder":
            await gate.wait()
        else:
            signals.append(ctx.signal)
        return name

    async with open_runner([locked]) as runner:
        gate = Gate()
        holder = runner.start_batch([ToolCall("locked", {"name": "holder"})])
        await gate.reached()
        check_missed(only(await runner.run_batch([ToolCall("locked", {"name": "late"})], deadline=SOON)))
        gate.open()
        assert facts(only(await holder.results())) == SUCCEEDED


@pytest.mark.virtual_time
async def test_a_batchs_deadline_stops_what_runs() -> None:
    @tool
    async def endless() -> None:
        """Never return."""
        await anyio.sleep_forever()

    async with open_runner([endless, free]) as runner:
        first, second = await runner.run_batch([ToolCall("endless"), ToolCall("free")], deadline=SOON)
    assert facts(first) == TIMED_OUT
    check_never_started(second, (Outcome.TIMED_OUT, Code.ABORTED_BEFORE_DISPATCH, False, None))
    assert signals == []


@pytest.mark.virtual_time
async def test_a_deadline_that_passes_while_a_wrapper_still_waits_keeps_the_value() -> None:
    async with open_runner([free]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            result = await go_on(call)
            await signals[0].wait()
            return result

        runner.use(wrap)
        result = only(await runner.run_batch([ToolCall("free")], deadline=SOON))
    assert facts(result) == (Outcome.TIMED_OUT, Code.TIMED_OUT, True, Ended.RETURNED)
    assert facts(result) != FINISHED_FIRST
    assert (result.value, stop_of(result)[2]) == ("done", StopPhase.FINISHING)
