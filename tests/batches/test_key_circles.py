"""Circles that go through an idempotency key and a lock, or a batch's order: refused at once, never waited in."""

from typing import Any

import anyio
import pytest
from batches.stage import BOUND
from stillness import quiet

from toolrunner import Runner, ToolCall, ToolContext, ToolResult, tool
from toolrunner.results import Code, ErrorKind, Outcome, Retry

pytestmark = pytest.mark.anyio


def is_refused(result: ToolResult) -> bool:
    """Refused because it would have waited for a call that waits for it."""
    refused = result.code is Code.SPAWN_REFUSED
    if refused:
        assert result.error is not None
        assert result.error.kind == ErrorKind.LIMIT
        assert result.retry is Retry.SAFE
    return refused


class Play:
    """`keyed` holds a key and then has a child that wants the lock; `locks` holds the lock and has a child that wants the key."""

    def __init__(self) -> None:
        self.both_hold = {"keyed": anyio.Event(), "locks": anyio.Event()}
        self.go = {"keyed": anyio.Event(), "locks": anyio.Event()}
        self.children: dict[str, ToolResult] = {}

        @tool(parallel_safe=True, resources=lambda args: ["L"])
        async def leaf(ctx: ToolContext[Any]) -> str:
            return "leaf"

        @tool(parallel_safe=True, dedupe_by_arguments=True)
        async def keyed(ctx: ToolContext[Any]) -> str:
            return await self.play("keyed", "leaf", ctx)

        @tool(parallel_safe=True, resources=lambda args: ["L"])
        async def locks(ctx: ToolContext[Any]) -> str:
            return await self.play("locks", "keyed", ctx)

        self.tools = [leaf, keyed, locks]

    async def play(self, name: str, child: str, ctx: ToolContext[Any]) -> str:
        self.both_hold[name].set()
        await self.go[name].wait()
        self.children[name] = await ctx.run(child, {})
        return name


@pytest.mark.parametrize("order", [("keyed", "locks"), ("locks", "keyed")])
async def test_a_key_and_a_lock_wanted_crosswise_do_not_hang(order: tuple[str, str]) -> None:
    play = Play()
    async with Runner(play.tools) as runner:
        with anyio.fail_after(BOUND):
            batch = runner.start_batch([ToolCall("keyed"), ToolCall("locks")])
            for event in play.both_hold.values():
                await event.wait()
            for name in order:
                play.go[name].set()
                await quiet()
            results = await batch.results()
    assert [result.outcome for result in results] == [Outcome.SUCCEEDED] * 2
    # Who closes the circle is refused; the other one then gets what it waits for.
    assert is_refused(play.children[order[1]])
    assert play.children[order[0]].outcome is Outcome.SUCCEEDED


async def test_a_key_whose_call_settles_after_one_that_waits_for_the_lock_is_not_waited_for() -> None:
    play = Play()

    @tool(parallel_safe=True, dedupe_by_arguments=True)
    async def quick() -> str:
        return "quick"

    inner: list[ToolResult] = []
    go = anyio.Event()

    @tool(parallel_safe=True, resources=lambda args: ["L"])
    async def holder(ctx: ToolContext[Any]) -> str:
        await go.wait()
        inner.append(await ctx.run("quick", {}))
        return "holder"

    async with Runner([*play.tools, quick, holder]) as runner:
        with anyio.fail_after(BOUND):
            first = runner.start_batch([ToolCall("holder")])
            await quiet()
            # "leaf" waits for the lock, "quick" has ended and settles after it.
            second = runner.start_batch([ToolCall("leaf"), ToolCall("quick")])
            await quiet()
            go.set()
            await first.results()
            assert [result.outcome for result in await second.results()] == [Outcome.SUCCEEDED] * 2
    assert is_refused(inner[0])


async def test_a_wait_that_ends_by_itself_is_no_circle() -> None:
    holds, go = anyio.Event(), anyio.Event()

    @tool(parallel_safe=True, resources=lambda args: ["L"])
    async def holder() -> str:
        holds.set()
        await go.wait()
        return "holder"

    play = Play()
    play.go["keyed"].set()
    async with Runner([*play.tools, holder]) as runner:
        with anyio.fail_after(BOUND):
            first = runner.start_batch([ToolCall("holder")])
            await holds.wait()
            second = runner.start_batch([ToolCall("keyed"), ToolCall("keyed"), ToolCall("leaf")])
            await quiet()
            go.set()
            await first.results()
            results = await second.results()
    assert [result.outcome for result in results] == [Outcome.SUCCEEDED] * 3
    assert results[1].replayed
    assert play.children["keyed"].outcome is Outcome.SUCCEEDED
