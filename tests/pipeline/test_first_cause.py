"""Of several reasons to stop, the first is told: in the result, in the records, and through every signal."""

import itertools
from typing import Any

import anyio
import pytest
from pipeline.bench import (
    DENIED,
    STOPPED,
    SUCCEEDED,
    TIMED_OUT,
    check_never_started,
    check_stopped_early,
    facts,
    only,
    open_runner,
    stop_of,
)

from toolrunner import (
    AbortController,
    AbortSignal,
    Decision,
    MemoryJournal,
    Policy,
    ToolCall,
    ToolContext,
    ToolResult,
    cancel,
    tool,
)
from toolrunner.facts import StopPhase
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio

gates: list[Gate] = []


@tool
async def hold(ctx: ToolContext[Any]) -> str:
    """Hold the cancel back until the gate opens, then give way."""
    with ctx.cleanup():
        await gates[-1].wait()
    await anyio.sleep_forever()
    return "never"


ORDERS = list(itertools.permutations(["caller", "wrapper:wrap", "batch"]))


@pytest.mark.parametrize("order", ORDERS, ids=",".join)
async def test_whoever_aborts_first_is_the_cause_and_the_rest_change_nothing(order: tuple[str, ...]) -> None:
    journal = MemoryJournal()
    own, caller = AbortController(), AbortController()
    async with open_runner([hold], journal=journal) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            return await go_on(call, signal=own.signal)

        runner.use(wrap)
        gates.append(Gate())
        batch = runner.start_batch([ToolCall("hold")], signal=caller.signal)
        await gates[-1].reached()
        abort = {
            "caller": lambda: caller.abort("by caller"),
            "wrapper:wrap": lambda: own.abort("by wrapper:wrap"),
            "batch": lambda: batch.abort("by batch"),
        }
        for source in order:
            assert abort[source]()
        gates[-1].open()
        result = only(await batch.results())
    first = order[0]
    assert facts(result) == STOPPED
    assert stop_of(result) == ("caller" if first == "batch" else first, f"by {first}", StopPhase.RUNNING)
    requested = [record for record in journal if record.type == "call/stop_requested"]
    assert [record.reason for record in requested] == [f"by {first}"]
    assert [record.type for record in journal].count("call/stop_delivered") == 1


async def test_a_second_abort_of_the_same_controller_is_none() -> None:
    stop = AbortController()
    async with open_runner([hold]) as runner:
        gates.append(Gate())
        batch = runner.start_batch([ToolCall("hold")], signal=stop.signal)
        await gates[-1].reached()
        assert stop.abort("first")
        assert not stop.abort("second")
        gates[-1].open()
        assert stop_of(only(await batch.results())) == ("caller", "first", StopPhase.RUNNING)


async def test_a_hooks_cancel_denies_its_call_and_stops_the_batch_in_its_name() -> None:
    async with open_runner([hold]) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> Any:
            return cancel("budget spent") if call.call_id == "c1" else None

        runner.pre_execute(pre)
        batch = await runner.run_batch([ToolCall("hold", call_id="c1"), ToolCall("hold", call_id="c2")])
    check_never_started(batch[0], DENIED)
    assert batch[0].error is not None
    assert batch[0].error.message == "budget spent"
    check_stopped_early(batch[1], "budget spent", "hook")
    assert batch.stopped is not None
    assert (batch.stopped.source, batch.stopped.reason) == ("hook", "budget spent")


async def test_closing_the_runner_is_told_as_a_shutdown_unless_somebody_was_first() -> None:
    caller = AbortController()
    async with open_runner([hold]) as runner:
        gates.append(Gate())
        first = runner.start_batch([ToolCall("hold")], signal=caller.signal)
        await gates[-1].reached()
        gates.append(Gate())
        second = runner.start_batch([ToolCall("hold")])
        await gates[-1].reached()
        caller.abort("enough")
        for gate in gates[-2:]:
            gate.open()
        with anyio.fail_after(60):
            await runner.aclose()
        assert stop_of(only(await first.results())) == ("caller", "enough", StopPhase.RUNNING)
        assert stop_of(only(await second.results())) == ("shutdown", "the runner was closed", StopPhase.RUNNING)


async def test_a_host_that_is_cancelled_is_told_as_the_host() -> None:
    async with open_runner([hold]) as runner:
        gates.append(Gate())
        batch = runner.start_batch([ToolCall("hold")])
        async with anyio.create_task_group() as group:
            group.start_soon(batch.results)
            await gates[-1].reached()
            gates[-1].open()
            group.cancel_scope.cancel()
        result = runner.result(batch.run_ids[0])
    assert facts(result) == STOPPED
    assert stop_of(result) == ("host", "the task that awaited the batch was cancelled", StopPhase.RUNNING)


async def test_a_child_is_told_that_its_parent_was_stopped() -> None:
    seen: list[ToolResult] = []

    @tool
    async def parent(ctx: ToolContext[Any]) -> None:
        """Make a child call."""
        with ctx.cleanup():
            seen.append(await ctx.run("hold"))
        await anyio.sleep_forever()

    stop = AbortController()
    async with open_runner([hold, parent]) as runner:
        gates.append(Gate())
        batch = runner.start_batch([ToolCall("parent")], signal=stop.signal)
        await gates[-1].reached()
        stop.abort("enough")
        gates[-1].open()
        result = only(await batch.results())
    assert stop_of(only(seen)) == ("parent", "enough", StopPhase.RUNNING)
    assert only(seen).parent_run_id == result.run_id
    assert stop_of(result) == ("caller", "enough", StopPhase.RUNNING)


async def test_an_approvers_stop_after_the_callers_abort_is_the_callers() -> None:
    caller = AbortController()

    class Approver:
        async def decide(self, request: Any, signal: AbortSignal) -> Decision:
            caller.abort("enough")
            return Decision.stop("no more")

    async with open_runner([hold], policy=Policy.of(ask=["hold"]), approver=Approver()) as runner:
        batch = await runner.run_batch([ToolCall("hold"), ToolCall("hold")], signal=caller.signal)
    for result in batch:
        check_stopped_early(result)
    assert batch.stopped is not None
    assert batch.stopped.source == "caller"


async def test_the_reason_a_signal_once_told_never_changes() -> None:
    inner, outer = AbortController(source="cost"), AbortController()
    merged = AbortSignal.any(inner.signal, outer.signal)
    outer.abort("drain first", mode="drain")
    body = merged.immediate()
    assert not body.aborted
    inner.abort("budget")
    assert body.reason is not None
    assert (body.reason.source, body.reason.text) == ("cost", "budget")
    outer.abort("now")
    assert (body.reason.source, body.reason.text) == ("cost", "budget")


async def test_what_stopped_nothing_is_not_told() -> None:
    @tool(timeout=60)
    async def fast() -> str:
        """Return at once."""
        return "done"

    own, caller = AbortController(), AbortController()
    async with open_runner([fast]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            result = await go_on(call, signal=own.signal)
            own.abort("after it was over")
            return result

        runner.use(wrap)
        result = await runner.run("fast", signal=caller.signal)
        caller.abort("after it was settled")
        assert runner.result(result.run_id) == result
    assert facts(result) == SUCCEEDED
    assert facts(result) != TIMED_OUT
    assert result.stop is None
