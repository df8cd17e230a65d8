"""Defects that a review of the whole found, each with the test that showed it: children, keys, closing, journals."""

import asyncio
import contextvars
from collections.abc import Awaitable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from batches.stage import BOUND, Refusing, Stage, alone, assert_never_entered, opened, step, stubborn
from stillness import quiet

from toolrunner import (
    BatchResult,
    Runner,
    ToolCall,
    ToolContext,
    ToolResult,
    shell,
    tool,
)
from toolrunner.errors import CallOver, NotSettled
from toolrunner.loops import current_native_task, spawn_detached
from toolrunner.records import Record
from toolrunner.testing import FakeCommand, FakeSupervisor


@pytest.mark.anyio
async def test_what_a_child_cannot_prove_its_parent_does_not_claim() -> None:
    fake = FakeSupervisor(FakeCommand(exit_code=None))

    @tool
    async def parent(ctx: ToolContext[Any]) -> str:
        return (await ctx.run("shell", {"command": "x"})).outcome

    async with opened(parent, shell, supervisor=fake.made) as runner:
        batch = runner.start_batch([ToolCall("parent")])
        process = await fake.prepared()
        await quiet()
        process.lose_keeper()
        (result,) = await batch
    assert result.value == "failed"
    assert result.still_running is None
    assert batch_proof(result) is None


def batch_proof(result: ToolResult) -> object:
    return BatchResult((result,)).still_running


@pytest.mark.anyio
async def test_a_child_call_made_after_its_parents_body_is_over_is_refused() -> None:
    """A task that the body left behind makes it: the parent's result was told, and its locks are given back."""
    stage, kept = Stage(), list[ToolContext[Any]]()

    @tool
    async def parent(ctx: ToolContext[Any]) -> None:
        kept.append(ctx)

    async with opened(parent, stage.tools) as runner:
        await runner.run("parent")
        with pytest.raises(CallOver, match="is over"):
            await kept[0].run("step", {"name": "late"})
    assert stage.entered == []


@pytest.mark.anyio
async def test_a_child_call_begun_while_its_parent_waits_for_another_is_waited_for_too() -> None:
    stage = Stage()

    @tool
    async def parent(ctx: ToolContext[Any]) -> None:
        async def later(name: str, after: str) -> None:
            await stage[after].started.wait()
            await ctx.run("step", {"name": name})

        native = contextvars.copy_context()
        spawn_detached(lambda: quietly(ctx.run("step", {"name": "a"})), "a", native)
        spawn_detached(lambda: quietly(later("b", "wake")), "b", native)
        await stage["a"].started.wait()

    async def quietly(work: Any) -> None:
        await work

    async with opened(parent, stage.tools) as runner:
        batch = runner.start_batch([ToolCall("parent")])
        await stage.started("a")
        await quiet()
        stage["wake"].started.set()
        await stage.started("b")
        stage.end("a")
        await quiet()
        with pytest.raises(NotSettled):
            runner.result(batch.run_ids[0])
        stage.end("b")
        await batch


@pytest.mark.anyio
async def test_calls_whose_children_wait_for_each_others_keys_do_not_hang() -> None:
    both = {1: anyio.Event(), 2: anyio.Event()}

    @tool(dedupe_by_arguments=True, parallel_safe=True)
    async def parent(number: int, ctx: ToolContext[Any]) -> str:
        both[number].set()
        await both[3 - number].wait()
        child = await ctx.run("parent", {"number": 3 - number})
        return f"{child.outcome} {child.code}"

    async with opened(parent) as runner:
        results = await runner.run_batch([ToolCall("parent", {"number": 1}), ToolCall("parent", {"number": 2})])
    assert [result.outcome for result in results] == ["succeeded", "succeeded"]
    assert "rejected SPAWN_REFUSED" in [result.value for result in results]


@pytest.mark.anyio
async def test_a_call_that_makes_itself_again_under_its_own_key_does_not_wait_for_itself() -> None:
    @tool(dedupe_by_arguments=True)
    async def again(ctx: ToolContext[Any]) -> str:
        child = await ctx.run("again")
        return f"{child.outcome} {child.code}"

    async with opened(again) as runner:
        assert (await runner.run("again")).value == "rejected SPAWN_REFUSED"


@pytest.mark.anyio
async def test_a_replayed_result_names_the_parent_of_the_call_that_asked() -> None:
    @tool(dedupe_by_arguments=True)
    async def leaf() -> str:
        return "leaf"

    seen: list[ToolResult] = []

    @tool
    async def parent(ctx: ToolContext[Any]) -> None:
        seen.append(await ctx.run("leaf"))

    async with opened(leaf, parent) as runner:
        first = await runner.run("leaf")
        outer = await runner.run("parent")
    assert (seen[0].replayed, seen[0].about_run_id) == (True, first.run_id)
    assert seen[0].parent_run_id == outer.run_id


@pytest.mark.anyio
async def test_a_body_that_closes_its_own_runner_is_refused() -> None:
    box: list[Runner] = []

    @tool
    async def close() -> str:
        await box[0].aclose()
        return "closed"

    async with opened(close) as runner:
        box.append(runner)
        result = await runner.run("close")
        assert result.error is not None
        assert "NestedClose" in result.error.message
        assert (await runner.run("close")).outcome == "failed"


@pytest.mark.anyio
async def test_a_natively_cancelled_close_goes_on_to_its_end() -> None:
    if not hasattr(current_native_task(), "cancelling"):
        pytest.skip("native cancels are asyncio's")
    fake, stage = FakeSupervisor(), Stage()
    with anyio.fail_after(BOUND):
        runner = await Runner([stage.tools], supervisor=fake.made).__aenter__()
        batch = runner.start_batch([stubborn("a")])
        await stage.started("a")
        closing = asyncio.ensure_future(runner.aclose())
        await quiet()
        closing.cancel()
        await quiet()
        stage.end("a")
        with pytest.raises(asyncio.CancelledError):
            await closing
        await batch
        assert fake.closed


@pytest.mark.anyio
@pytest.mark.virtual_time
async def test_a_batch_that_the_journal_refuses_half_way_leaves_nothing_to_wait_for() -> None:
    stage = Stage()
    recorded: list[str] = []

    def second(record: Record) -> bool:
        if record.type == "call/recorded":
            recorded.append(record.run_id)
        return len(recorded) == 2 and record.type == "call/recorded"

    journal = Refusing(second)
    with anyio.fail_after(BOUND):
        runner = await Runner([stage.tools], journal=journal).__aenter__()
        with pytest.raises(RuntimeError, match="bug at call/recorded"):
            runner.start_batch([step("a"), step("b")], deadline=60)
        await runner.aclose(limit=0.1)
    settled = [record.result for record in journal.inner if record.type == "call/settled"]
    assert [(result.run_id, result.code) for result in settled] == [(recorded[0], "ABORTED_BEFORE_DISPATCH")]


class Stuck:
    """A journal whose records of one type never become durable."""

    def __init__(self, *types: str) -> None:
        self.types = types

    def append(self, *records: Record) -> Awaitable[None] | None:
        return anyio.sleep_forever() if any(record.type in self.types for record in records) else None

    @property
    def error(self) -> str | None:
        return None

    async def aclose(self) -> None:
        pass


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["call/dispatched", "call/ended"])
async def test_a_journal_that_never_answers_holds_a_call_for_its_bound(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolrunner.pipeline.durable.DURABLE_WAIT", 0.05)
    stage = Stage()
    stage.let_go()
    async with opened(stage.tools, journal=Stuck(kind)) as runner:
        result = await runner.run(step("a"))
    assert [note.kind for note in result.notes] == ["journal_error"]
    if kind == "call/dispatched":
        assert (result.outcome, result.code, result.started) == ("rejected", "ENVIRONMENT_GONE", False)
    else:
        assert (result.outcome, result.value) == ("succeeded", "a")


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["pre_execute", "use", "post_execute"])
async def test_an_interrupt_out_of_a_hook_reaches_the_host(kind: str) -> None:
    stage = Stage()
    stage.let_go()

    async def leave(*_: object) -> None:
        raise KeyboardInterrupt

    async with opened(stage.tools) as runner:
        getattr(runner, kind)(leave)
        batch = runner.start_batch([alone("a"), alone("b")])
        with pytest.raises(KeyboardInterrupt):
            await batch
        a, b = (runner.result(run_id) for run_id in batch.run_ids)
    assert a.started == (kind == "post_execute")
    if not a.started:  # else the next one may have started when the first one's body was over
        assert_never_entered(b)
