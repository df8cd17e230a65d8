"""Under whose locks an act is undone: those of its call, as long as the undo goes on, or the same ones taken anew."""

from typing import Any

import anyio
import pytest
from undo.worlds import BOUND, World, check_every_crash, check_truth, errors, stages, tool_of, writer

from toolrunner import AbortController, Runner, ToolCall, ToolContext, tool
from toolrunner.facts import EffectState
from toolrunner.pipeline import compensate, undoing
from toolrunner.results import Ended, Outcome, Retry
from toolrunner.testing import Gate
from toolrunner.tools import Resource, Undoing

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("in_thread", [False, True])
async def test_an_undo_that_cannot_be_ended_is_listed_and_keeps_its_locks_until_it_is_over(
    monkeypatch: pytest.MonkeyPatch, in_thread: bool
) -> None:
    monkeypatch.setattr(undoing, "UNDO_LIMIT", 0.02)
    monkeypatch.setattr(undoing, "UNDO_STOP_BOUND", 0.02)
    world, gate = World(), Gate()

    async def stubborn(effect: Undoing) -> None:
        with anyio.CancelScope(shield=True):
            while True:
                try:
                    await gate.wait()
                    break
                except anyio.get_cancelled_exc_class():  # a native cancel, which goes through the shield
                    pass
        world.unmake(effect.target)

    def blocking(effect: Undoing) -> None:
        gate.wait_blocking()
        world.unmake(effect.target)

    @tool(resources=lambda _: ["thing"])
    async def other() -> str:
        return "mine now"

    write = writer(world, blocking if in_thread else stubborn, resources=lambda _: ["thing"])
    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner([write, other], journal=world) as runner:
            batch = runner.start_batch([ToolCall("write")], signal=stop.signal)
            await anyio.wait_all_tasks_blocked()
            stop.abort("enough")
            [result] = await batch.results()
            assert [one.what for one in result.still_running or ()] == ["undo of b"]
            assert (result.effects.state, result.retry) == (EffectState.UNKNOWN, Retry.CHECK_FIRST)
            assert stages(result) == [("a", "applied"), ("b", "unknown")]
            assert errors(result) == ["not undone: the undo of b is still running", "its undo did not end within 0.02 s"]
            assert world.there == {"a", "b"}
            later = runner.start_batch([ToolCall("other")])
            await anyio.wait_all_tasks_blocked()
            assert [record.type for record in world.records if record.run_id == later.run_ids[0]][-1] == "call/decided"
            gate.open()
            [second] = await later.results()
            assert second.outcome is Outcome.SUCCEEDED
    assert world.there == {"a"}
    assert world.records[-1].type == "call/settled"


async def test_an_abort_after_the_body_undoes_too_with_its_locks_taken_anew() -> None:
    world, gate, seen = World(), Gate(), list[int]()

    async def undo(effect: Undoing) -> None:
        seen.append(len(runner._services.leases._out))  # type: ignore[union-attr]
        world.unmake(effect.target)

    write = writer(world, undo, gate=gate, resources=lambda _: ["thing"])
    after = Gate()
    stop = AbortController()

    async def hook(call: object, result: object, signal: object) -> None:
        await after.wait()

    with anyio.fail_after(BOUND):
        async with Runner([write], journal=world) as runner:
            runner.post_execute(hook)
            batch = runner.start_batch([ToolCall("write")], signal=stop.signal)
            await gate.reached()
            gate.open()
            await after.reached()
            stop.abort("enough")
            after.open()
            [result] = await batch.results()
    check_truth(world, result)
    check_every_crash(world)
    assert seen == [1, 1]
    assert (result.outcome, result.ended, result.effects.state) == (Outcome.ABORTED, Ended.RETURNED, EffectState.REVERTED)
    assert result.value == "done"


async def test_what_others_use_by_then_is_not_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compensate, "LOCKS_WAIT", 0.02)
    world, gate, busy, after = World(), Gate(), Gate(), Gate()

    @tool(resources=lambda _: ["thing"])
    async def other() -> None:
        await busy.wait()

    async def hook(call: ToolCall, result: object, signal: object) -> None:
        if call.name == "write":
            await after.wait()

    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner([writer(world, world.undo, gate=gate, resources=lambda _: ["thing"]), other], journal=world) as runner:
            runner.post_execute(hook)
            batch = runner.start_batch([ToolCall("write")], signal=stop.signal)
            await gate.reached()
            gate.open()
            await after.reached()
            holding = runner.start_batch([ToolCall("other")])
            await busy.reached()
            stop.abort("enough")
            after.open()
            [result] = await batch.results()
            busy.open()
            await holding.results()
    check_truth(world, result)
    assert (world.undone, result.effects.state) == ([], EffectState.COMPLETED)
    assert errors(result) == ["not undone: another call uses thing, and did for 0.02 s"] * 2


async def test_an_undo_that_would_wait_for_a_call_that_waits_for_its_own_is_not_begun_and_says_so() -> None:
    world, made = World(), anyio.Event()
    make = tool_of(world, "x", world.undo, name="make", resources=lambda _: ["b"])

    @tool(resources=lambda _: ["a"], compensate="on_abort")
    async def stopped_one(ctx: ToolContext[Any]) -> None:
        await ctx.run("make")
        made.set()
        await anyio.sleep_forever()

    @tool(resources=lambda _: ["a"])
    async def inner() -> None:
        pass

    @tool(resources=lambda _: ["b"])
    async def outer(ctx: ToolContext[Any]) -> None:
        await ctx.run("inner")

    stop = AbortController()
    with anyio.fail_after(compensate.LOCKS_WAIT):
        async with Runner([make, stopped_one, inner, outer], journal=world) as runner:
            batch = runner.start_batch([ToolCall("stopped_one")], signal=stop.signal)
            await made.wait()
            other = runner.start_batch([ToolCall("outer")])
            await anyio.wait_all_tasks_blocked()
            stop.abort("enough")
            [result] = await batch.results()
            [second] = await other.results()
    check_truth(world, result)
    assert (world.undone, second.outcome) == ([], Outcome.SUCCEEDED)
    assert errors(result) == ["not undone: another call uses b, and itself waits for this one"]


async def test_an_undo_that_ran_over_its_bound_and_ended_before_the_result_is_no_more_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(undoing, "UNDO_LIMIT", 0.02)
    monkeypatch.setattr(undoing, "UNDO_STOP_BOUND", 0.02)
    world, gate, after, undone = World(), Gate(), Gate(), anyio.Event()

    def undo(effect: Undoing) -> None:
        gate.wait_blocking()
        world.unmake(effect.target)

    async def hook(call: object, result: object, signal: object) -> None:
        await after.wait()

    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner([writer(world, undo, "a")], journal=world) as runner:
            runner.post_execute(hook)
            runner.on_record(lambda record: undone.set() if record.type == "effect/undone" else None)
            batch = runner.start_batch([ToolCall("write")], signal=stop.signal)
            await anyio.wait_all_tasks_blocked()
            stop.abort("enough")
            await after.reached()
            gate.open()
            await undone.wait()
            after.open()
            [result] = await batch.results()
    check_truth(world, result)
    assert (result.effects.state, result.still_running) == (EffectState.REVERTED, ())


def test_two_uses_of_one_key_need_one_lock() -> None:
    read, write = Resource("a", "read"), Resource("a", "write")
    assert compensate.merged([read, write, read, Resource("b", "read")]) == (write, Resource("b", "read"))
