"""Undoing what a stopped call did: when, in which order, under whose locks, within which bounds, and how it is told."""

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from undo.worlds import World, check_every_crash, check_truth, tool_of

from toolrunner import AbortController, Runner, ToolCall, ToolContext, ToolResult, tool
from toolrunner.errors import ConfigError, ToolDefinitionError
from toolrunner.facts import EffectStage, EffectState, Evidence
from toolrunner.pipeline import compensate, undoing
from toolrunner.results import Ended, Outcome, Retry, plain_text
from toolrunner.testing import Gate
from toolrunner.tools import Command, Resource, RetryPolicy, Undo, Undoing, command_tool

pytestmark = pytest.mark.anyio

BOUND = 10.0


def writer(world: World, undo: Any, targets: str = "ab", gate: Gate | None = None, **options: Any) -> Any:
    """A tool that makes its targets and then waits to be stopped, or at a gate."""

    @tool(**{"compensate": "on_abort", **options})
    async def write(ctx: ToolContext[Any]) -> str:
        for target in targets:
            async with ctx.effect("test", target, undo=undo) as effect:
                world.make(target)
                effect.receipt = f"made {target}"
        await (gate.wait() if gate is not None else anyio.sleep_forever())
        return "done"

    return write


async def stopped(world: World, tools: list[Any], name: str = "write", **settings: Any) -> ToolResult:
    """The result of a call that is aborted once it has nothing left to do."""
    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner(tools, journal=world, **settings) as runner:
            batch = runner.start_batch([ToolCall(name)], signal=stop.signal)
            await anyio.wait_all_tasks_blocked()
            stop.abort("enough")
            [result] = await batch.results()
    check_truth(world, result)
    check_every_crash(world)
    return result


def stages(result: ToolResult) -> list[tuple[str, str]]:
    return [(one.target, str(one.stage)) for one in result.effects.records]


def errors(result: ToolResult) -> list[str | None]:
    return [one.error for one in result.effects.records]


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


async def test_an_undo_that_fails_leaves_unknown_and_its_error_is_kept() -> None:
    world = World()
    result = await stopped(world, [writer(world, world.undo_half)])
    assert (result.effects.state, stages(result)) == (EffectState.UNKNOWN, [("a", "unknown"), ("b", "unknown")])
    assert errors(result) == ["its undo failed: OSError: the answer was lost"] * 2
    assert result.retry is Retry.CHECK_FIRST


async def test_an_undo_that_says_it_did_nothing_leaves_a_part() -> None:
    world = World()

    async def undo(effect: Undoing) -> None:
        if effect.target == "b":
            effect.not_applied()
            raise OSError("b is locked")
        world.unmake(effect.target)

    result = await stopped(world, [writer(world, undo)])
    assert (result.effects.state, stages(result)) == (EffectState.PARTIAL, [("a", "undone"), ("b", "applied")])
    assert errors(result) == [None, "its undo failed: OSError: b is locked"]
    told = plain_text(result.content_for_model())
    assert "At least part of its changes were made: b" in told
    assert "Undone: a." in told


async def test_one_that_has_no_undo_stays() -> None:
    world = World()
    result = await stopped(world, [writer(world, None)])
    assert (result.effects.state, stages(result)) == (EffectState.PARTIAL, [("a", "applied"), ("b", "applied")])


@pytest.mark.parametrize("again, tries", [(False, 1), (True, 3)])
async def test_only_an_undo_that_may_be_repeated_is_tried_again(again: bool, tries: int) -> None:
    world, tried = World(), list[str]()

    async def undo(effect: Undoing) -> None:
        tried.append(effect.target)
        raise OSError("in use")

    result = await stopped(world, [writer(world, Undo(undo, idempotent=again), "a")])
    assert (tried, result.effects.state) == (["a"] * tries, EffectState.UNKNOWN)


async def test_a_second_try_that_works_is_a_confirmed_undo() -> None:
    world, tried = World(), list[str]()

    async def undo(effect: Undoing) -> None:
        tried.append(effect.target)
        if len(tried) < 3:
            raise OSError("in use")
        world.unmake(effect.target)

    result = await stopped(world, [writer(world, Undo(undo, idempotent=True), "a")])
    assert (len(tried), result.effects.state) == (3, EffectState.REVERTED)


async def test_a_try_that_did_nothing_after_one_that_failed_proves_nothing() -> None:
    world, tried = World(), list[str]()

    async def undo(effect: Undoing) -> None:
        tried.append(effect.target)
        if len(tried) == 1:
            raise OSError("half-way")
        effect.not_applied()

    result = await stopped(world, [writer(world, Undo(undo, idempotent=True), "a")])
    assert (len(tried), result.effects.state) == (2, EffectState.UNKNOWN)


@pytest.mark.parametrize("when_unknown", [False, True])
async def test_an_act_of_which_nobody_knows_is_undone_only_by_an_undo_that_copes_with_it(when_unknown: bool) -> None:
    world = World()
    how = Undo(world.undo, when_unknown=when_unknown)

    @tool(compensate="on_abort")
    async def write(ctx: ToolContext[Any]) -> None:
        async with ctx.effect("test", "a", undo=how):
            world.make("a")
            await anyio.sleep_forever()

    result = await stopped(world, [write])
    assert result.effects.state is (EffectState.REVERTED if when_unknown else EffectState.UNKNOWN)
    assert world.there == (set() if when_unknown else {"a"})


async def test_an_undo_that_hangs_is_cancelled_after_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undoing, "UNDO_LIMIT", 0.02)
    world, cleaned = World(), list[str]()

    async def undo(effect: Undoing) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cleaned.append(effect.target)

    result = await stopped(world, [writer(world, undo)])
    assert (cleaned, result.effects.state, result.still_running) == (["b", "a"], EffectState.UNKNOWN, ())
    assert errors(result) == ["its undo did not end within 0.02 s"] * 2


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


async def test_neither_a_second_abort_nor_a_host_that_goes_away_stops_an_undo() -> None:
    world, gate = World(), Gate()

    async def undo(effect: Undoing) -> None:
        await gate.wait()
        world.unmake(effect.target)

    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner([writer(world, undo)], journal=world) as runner:
            host = anyio.CancelScope()

            async def wait() -> None:
                with host:
                    await runner.run("write", signal=stop.signal)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                stop.abort("enough")
                await gate.reached()
                stop.abort("again")
                host.cancel()
                await anyio.wait_all_tasks_blocked()
                assert world.there == {"a", "b"}
                gate.open()
            [result] = [record.result for record in world.records if record.type == "call/settled"]
    assert result.effects.state is EffectState.REVERTED


async def test_closing_the_runner_waits_for_the_undo() -> None:
    world = World()
    with anyio.fail_after(BOUND):
        async with Runner([writer(world, world.undo)], journal=world) as runner:
            batch = runner.start_batch([ToolCall("write")])
            await anyio.wait_all_tasks_blocked()
        [result] = await batch.results()
    check_truth(world, result)
    assert (result.effects.state, result.stop and result.stop.source) == (EffectState.REVERTED, "shutdown")


async def test_a_close_with_a_limit_publishes_an_undo_under_way_as_what_it_is() -> None:
    world, gate = World(), Gate()

    async def undo(effect: Undoing) -> None:
        await gate.wait()
        world.unmake(effect.target)

    with anyio.fail_after(BOUND):
        async with Runner([writer(world, undo)], journal=world) as runner:
            batch = runner.start_batch([ToolCall("write")])
            await anyio.wait_all_tasks_blocked()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: runner.aclose(limit=0.02))
                [result] = await batch.results()
                assert [one.what for one in result.still_running or ()] == ["undo of b"]
                assert result.effects.state is EffectState.UNKNOWN
                gate.open()
    assert world.undone == ["b"]  # the result has told that a stands


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


async def test_an_undo_that_cannot_be_recorded_does_not_happen() -> None:
    world = World()

    class Failing(World):
        def append(self, *records: Any) -> None:
            if any(record.type == "effect/unknown" for record in records):
                self.error = "disk full"
            super().append(*records)

    world = Failing()
    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner([writer(world, world.undo)], journal=world) as runner:
            batch = runner.start_batch([ToolCall("write")], signal=stop.signal)
            await anyio.wait_all_tasks_blocked()
            stop.abort()
            [result] = await batch.results()
    check_truth(world, result)
    assert (world.undone, result.effects.state) == ([], EffectState.PARTIAL)
    assert errors(result) == ["not undone: it could not be recorded: disk full"] * 2
    assert [note.kind for note in result.notes] == ["journal_error"]


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


async def test_an_undo_runs_inside_its_runner_and_may_not_close_it() -> None:
    world, refused = World(), list[str]()

    async def undo(effect: Undoing) -> None:
        for attempt in (runner.aclose, lambda: runner.run("write")):
            try:
                await attempt()
            except Exception as error:
                refused.append(type(error).__name__)
        world.unmake(effect.target)

    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner([writer(world, undo, "a")], journal=world) as runner:
            batch = runner.start_batch([ToolCall("write")], signal=stop.signal)
            await anyio.wait_all_tasks_blocked()
            stop.abort()
            [result] = await batch.results()
    assert (refused, result.effects.state) == (["NestedClose", "NestedRun"], EffectState.REVERTED)


async def test_an_interrupt_out_of_an_undo_reaches_the_host_and_its_result_is_kept() -> None:
    world = World()

    async def undo(effect: Undoing) -> None:
        raise KeyboardInterrupt

    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner([writer(world, undo, "a")], journal=world) as runner:
            batch = runner.start_batch([ToolCall("write")], signal=stop.signal)
            await anyio.wait_all_tasks_blocked()
            stop.abort()
            with pytest.raises(KeyboardInterrupt):
                await batch.results()
    [result] = [record.result for record in world.records if record.type == "call/settled"]
    assert result.effects.state is EffectState.UNKNOWN


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


def test_two_uses_of_one_key_need_one_lock() -> None:
    read, write = Resource("a", "read"), Resource("a", "write")
    assert compensate.merged([read, write, read, Resource("b", "read")]) == (write, Resource("b", "read"))
