"""The loop's own end in the middle of an undo: it is waited for, and told as what it is."""

import asyncio
from typing import Any

import anyio
import pytest
import trio
from undo.worlds import World, check_every_crash, check_truth

from toolrunner import AbortController, Runner, ToolCall, ToolContext, ToolResult, tool
from toolrunner.facts import EffectState
from toolrunner.tools import Undo, Undoing


def stopped_in_its_undo(world: World, *, idempotent: bool) -> tuple[Any, Any]:
    """A main that ends while an undo of its runner waits, without closing the runner."""
    reached: list[anyio.Event] = []

    async def undo(effect: Undoing) -> None:
        reached[0].set()
        await anyio.sleep(0.05)  # something that a tear-down interrupts, if anything does
        world.unmake(effect.target)

    @tool(compensate="on_abort")
    async def write(ctx: ToolContext[Any]) -> None:
        async with ctx.effect("test", "a", undo=Undo(undo, idempotent=idempotent)):
            world.make("a")
        await anyio.sleep_forever()

    async def main() -> None:
        reached.append(anyio.Event())
        runner = await Runner([write], journal=world).__aenter__()
        stop = AbortController()
        runner.start_batch([ToolCall("write")], signal=stop.signal)
        await anyio.wait_all_tasks_blocked()
        stop.abort("enough")
        await reached[0].wait()

    return main, write


def settled(world: World) -> ToolResult:
    result: ToolResult
    [result] = [record.result for record in world.records if record.type == "call/settled"]
    check_truth(world, result)
    check_every_crash(world)
    return result


def test_on_trio_the_undo_ends_before_the_run_does() -> None:
    world = World()
    main, _ = stopped_in_its_undo(world, idempotent=False)
    trio.run(main)
    assert settled(world).effects.state is EffectState.REVERTED


def test_on_asyncio_an_undo_that_may_be_repeated_is_and_the_loop_waits_for_it() -> None:
    world = World()
    main, _ = stopped_in_its_undo(world, idempotent=True)
    asyncio.run(main())
    assert settled(world).effects.state is EffectState.REVERTED


def test_on_asyncio_an_undo_that_the_tear_down_cuts_short_is_unknown() -> None:
    world = World()
    main, _ = stopped_in_its_undo(world, idempotent=False)
    asyncio.run(main())
    result = settled(world)
    assert result.effects.state is EffectState.UNKNOWN
    assert "its undo failed" in (result.effects.records[0].error or "")


@pytest.mark.parametrize("run", [lambda main: asyncio.run(main()), trio.run], ids=["asyncio", "trio"])
def test_a_body_that_the_tear_down_ends_is_undone_all_the_same(run: Any) -> None:
    world = World()

    @tool(compensate="on_abort")
    async def write(ctx: ToolContext[Any]) -> None:
        async with ctx.effect("test", "a", undo=world.undo):
            world.make("a")
        await anyio.sleep_forever()

    async def main() -> None:
        runner = await Runner([write], journal=world).__aenter__()
        runner.start_batch([ToolCall("write")])
        await anyio.wait_all_tasks_blocked()

    run(main)
    result = settled(world)
    assert (world.there, result.effects.state) == (set(), EffectState.REVERTED)
