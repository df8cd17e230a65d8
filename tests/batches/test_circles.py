"""Child calls whose waits would close a circle: nobody waits for himself, and a circle of parents is refused, not hung on."""

import anyio
import pytest
from batches.stage import BOUND
from stillness import all_blocked

from toolrunner import Runner, ToolCall, ToolContext, tool
from toolrunner.results import Code, ErrorKind, Outcome, Retry
from toolrunner.tools import Resource

pytestmark = pytest.mark.anyio


@tool(parallel_safe=True, resources=lambda args: [args["key"]])
async def leaf(key: str) -> str:
    return key


@pytest.mark.parametrize("mode", ["write", "read"])
async def test_two_parents_whose_children_want_each_others_lock_do_not_hang(mode: str) -> None:
    both_hold = [anyio.Event(), anyio.Event()]
    children: dict[str, Outcome] = {}

    @tool(parallel_safe=True, resources=lambda args: [Resource(args["mine"], mode)])  # type: ignore[arg-type]
    async def parent(mine: str, other: str, ctx: ToolContext[None]) -> None:
        both_hold[mine == "a"].set()
        await both_hold[mine != "a"].wait()
        child = await ctx.run("leaf", {"key": other})
        children[mine] = child.outcome
        if child.outcome is Outcome.REJECTED:
            assert child.code is Code.SPAWN_REFUSED
            assert child.error is not None
            assert child.error.kind == ErrorKind.LIMIT
            assert child.retry is Retry.SAFE

    async with Runner([parent, leaf]) as runner:
        with anyio.fail_after(BOUND):
            results = await runner.run_batch(
                [ToolCall("parent", {"mine": "a", "other": "b"}), ToolCall("parent", {"mine": "b", "other": "a"})]
            )
    assert [result.outcome for result in results] == [Outcome.SUCCEEDED] * 2
    assert sorted(children.values()) == [Outcome.REJECTED, Outcome.SUCCEEDED]


async def test_a_child_is_not_kept_out_by_a_call_that_waits_for_its_parents_lock() -> None:
    waits = anyio.Event()

    @tool(parallel_safe=True, resources=lambda args: ["k"])
    async def parent(ctx: ToolContext[None]) -> str:
        await waits.wait()
        return (await ctx.run("leaf", {"key": "k"})).outcome

    async with Runner([parent, leaf]) as runner:
        with anyio.fail_after(BOUND):
            batch = runner.start_batch([ToolCall("parent"), ToolCall("leaf", {"key": "k"})])
            await all_blocked()
            waits.set()
            first, second = await batch
    assert first.value == Outcome.SUCCEEDED
    assert second.outcome is Outcome.SUCCEEDED


async def test_places_of_two_tools_that_call_each_other_do_not_hang() -> None:
    both = {"one": anyio.Event(), "two": anyio.Event()}

    async def meet(name: str, other: str, ctx: ToolContext[None], *, deep: bool) -> str:
        if deep:
            return "leaf"
        both[name].set()
        await both[other].wait()
        return (await ctx.run(other, {"deep": True})).outcome

    @tool(parallel_safe=True, max_concurrency=1)
    async def one(ctx: ToolContext[None], deep: bool) -> str:
        return await meet("one", "two", ctx, deep=deep)

    @tool(parallel_safe=True, max_concurrency=1)
    async def two(ctx: ToolContext[None], deep: bool) -> str:
        return await meet("two", "one", ctx, deep=deep)

    async with Runner([one, two]) as runner:
        with anyio.fail_after(BOUND):
            results = await runner.run_batch([ToolCall("one", {"deep": False}), ToolCall("two", {"deep": False})])
    assert sorted(str(result.value) for result in results) == [Outcome.REJECTED, Outcome.SUCCEEDED]
