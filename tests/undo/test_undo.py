"""Undoing what a stopped call did: when, in which order, what a parent has to do with it, and how it is told."""

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from undo.worlds import BOUND, World, check_truth, stages, stopped, tool_of, writer

from toolrunner import AbortController, Runner, ToolCall, ToolContext, ToolResult, tool
from toolrunner.errors import ConfigError, ToolDefinitionError
from toolrunner.facts import EffectStage, EffectState, Evidence
from toolrunner.results import Ended, Outcome, Retry, plain_text
from toolrunner.testing import Gate
from toolrunner.tools import Command, RetryPolicy, Undo, Undoing, command_tool

pytestmark = pytest.mark.anyio

_WHO = contextvars.ContextVar("_WHO", default="nobody")


async def test_the_latest_act_is_undone_first_with_its_receipt_and_the_model_is_told() -> None:
    world, receipts = World(), list[Any]()

    async def undo(effect: Undoing) -> None:
        receipts.append((effect.kind, effect.target, effect.receipt))
        world.unmake(effect.target)

    result = await stopped(world, [writer(world, undo)])
    assert receipts == [("test", "b", "made b"), ("test", "a", "made a")]
    assert (result.outcome, result.ended) == (Outcome.ABORTED, Ended.STOPPED)
    assert (result.effects.state, result.effects.evidence) == (EffectState.REVERTED, Evidence.REPORTED)
    assert result.retry is Retry.SAFE
    assert "Its changes were undone." in plain_text(result.content_for_model())
    assert "changes undone" in result.summary()
    assert [record.type for record in world.records][-6:] == [
        "call/ended", "effect/unknown", "effect/undone", "effect/unknown", "effect/undone", "call/settled",
    ]  # fmt: skip


@pytest.mark.parametrize("how", ["plain", "awaitable", "coroutine"])
async def test_a_plain_function_runs_in_a_thread_and_what_is_awaitable_on_the_loop(how: str) -> None:
    world, threads = World(), set[bool]()
    loop_thread = threading.get_ident()

    def plain(effect: Undoing) -> None:
        threads.add(threading.get_ident() == loop_thread)
        world.unmake(effect.target)

    async def coroutine(effect: Undoing) -> None:
        plain(effect)

    undos: dict[str, Callable[[Undoing], object]] = {
        "plain": plain,
        "awaitable": lambda effect: coroutine(effect),  # noqa: PLW0108 - it is no coroutine function, which is the point
        "coroutine": coroutine,
    }
    result = await stopped(world, [writer(world, undos[how])])
    assert result.effects.state is EffectState.REVERTED
    assert threads == {how != "plain"}


async def test_an_undo_in_a_thread_sees_the_context_of_whoever_made_the_call() -> None:
    world, seen = World(), list[str]()

    def undo(effect: Undoing) -> None:
        seen.append(_WHO.get())
        world.unmake(effect.target)

    token = _WHO.set("me")
    try:
        await stopped(world, [writer(world, undo, "a")])
    finally:
        _WHO.reset(token)
    assert seen == ["me"]


async def test_a_sync_tool_is_undone_too() -> None:
    world, gate = World(), Gate()

    @tool(compensate="on_abort")
    def write(ctx: ToolContext[Any]) -> None:
        with ctx.effect("test", "a", undo=world.undo_in_thread):
            world.make("a")
        gate.wait_blocking()

    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner([write], journal=world) as runner:
            batch = runner.start_batch([ToolCall("write")], signal=stop.signal)
            await gate.reached()
            stop.abort()
            gate.open()
            [result] = await batch.results()
    check_truth(world, result)
    assert (result.outcome, result.ended, result.effects.state) == (Outcome.ABORTED, Ended.RETURNED, EffectState.REVERTED)


async def test_without_compensate_nothing_is_undone() -> None:
    world = World()
    result = await stopped(world, [writer(world, world.undo, compensate=None)])
    assert (world.undone, result.effects.state) == ([], EffectState.PARTIAL)


async def test_a_body_that_fails_without_being_stopped_keeps_what_it_did() -> None:
    world = World()

    @tool(compensate="on_abort")
    async def write(ctx: ToolContext[Any]) -> None:
        async with ctx.effect("test", "a", undo=world.undo):
            world.make("a")
        raise ValueError("broken")

    async with Runner([write], journal=world) as runner:
        result = await runner.run("write")
    assert (result.outcome, world.there) == (Outcome.FAILED, {"a"})


async def test_a_body_that_fails_because_it_was_stopped_is_undone() -> None:
    world = World()

    @tool(compensate="on_abort")
    async def write(ctx: ToolContext[Any]) -> None:
        async with ctx.effect("test", "a", undo=world.undo):
            world.make("a")
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("in the middle of something")

    result = await stopped(world, [write])
    assert (result.outcome, result.effects.state) == (Outcome.FAILED, EffectState.REVERTED)
    assert result.retry is Retry.FIX_FIRST


async def test_a_time_limit_undoes_and_a_retry_starts_from_nothing() -> None:
    world, attempts = World(), list[set[str]]()

    @tool(compensate="on_abort", timeout=0.05, retry=RetryPolicy(2, wait_initial=0, wait_max=0))
    async def write(ctx: ToolContext[Any]) -> str:
        attempts.append(set(world.there))
        async with ctx.effect("test", "a", undo=world.undo):
            world.make("a")
        if ctx.attempt == 1:
            await anyio.sleep_forever()
        return "done"

    with anyio.fail_after(BOUND):
        async with Runner([write], journal=world) as runner:
            result = await runner.run("write")
    assert attempts == [set(), set()]
    assert (result.outcome, result.attempts) == (Outcome.SUCCEEDED, 2)
    # What the first attempt did is gone and counts no more: the second one did all that there was to do.
    assert (result.effects.state, stages(result)) == (EffectState.COMPLETED, [("a", "undone"), ("a", "applied")])
    check_truth_of_last(world, result)


def check_truth_of_last(world: World, result: ToolResult) -> None:
    assert [record.target for record in result.effects.records if record.stage is EffectStage.APPLIED] == sorted(world.there)


async def test_a_child_that_was_stopped_undoes_its_own_and_its_parent_what_is_left() -> None:
    world = World()
    done = tool_of(world, "b", world.undo, name="done", compensate=None)

    @tool(compensate="on_abort")
    async def parent(ctx: ToolContext[Any]) -> None:
        async with ctx.effect("test", "a", undo=world.undo):
            world.make("a")
        await ctx.run("done")
        await ctx.run("write")

    result = await stopped(world, [parent, done, writer(world, world.undo, "cd")], "parent")
    assert (world.undone, result.effects.state) == (["d", "c", "b", "a"], EffectState.REVERTED)
    children = {record.result.name: record.result for record in world.records if record.type == "call/settled"}
    assert children["write"].effects.state is EffectState.REVERTED
    assert children["done"].effects.state is EffectState.COMPLETED  # it was, when it was told


async def test_a_part_that_a_stopped_child_left_is_its_parents_to_undo() -> None:
    world = World()

    @tool(compensate="on_abort")
    async def parent(ctx: ToolContext[Any]) -> None:
        await ctx.run("write")

    result = await stopped(world, [parent, writer(world, world.undo, compensate=None)], "parent")
    assert (world.undone, result.effects.state) == (["b", "a"], EffectState.REVERTED)


async def test_a_parent_that_does_not_compensate_leaves_what_its_finished_children_did() -> None:
    world = World()

    @tool
    async def parent(ctx: ToolContext[Any]) -> None:
        await ctx.run("done")
        await anyio.sleep_forever()

    result = await stopped(world, [parent, tool_of(world, "b", world.undo, name="done")], "parent")
    assert (world.undone, result.effects.state) == ([], EffectState.PARTIAL)


def test_what_cannot_be_undone_is_refused_when_it_is_defined() -> None:
    with pytest.raises(ToolDefinitionError, match="its body is a process"):

        @command_tool(compensate="on_abort")
        def run() -> Command:
            return Command(["true"])

    with pytest.raises(ToolDefinitionError, match='isolation="process"'):
        tool(module_level, compensate="on_abort", isolation="process")
    with pytest.raises(ToolDefinitionError, match="'on_abort', or None"):
        tool(module_level, compensate="always")  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="an undo"):
        Undo("restore")  # type: ignore[arg-type]


def module_level() -> None:
    """A function that a worker could import."""
