"""Calls made inside bodies: they share what their parents hold, are stopped with them, and never end after them."""

from typing import Any

import anyio
import pytest
from batches.stage import Stage, assert_never_entered, of_type, opened, step
from stillness import quiet

from toolrunner import AbortController, ToolCall, ToolContext, ToolResult, tool
from toolrunner.records import Record

pytestmark = pytest.mark.anyio


def call(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments)


@pytest.mark.case("E24")
async def test_parents_that_fill_the_pool_and_each_want_a_child_all_end() -> None:
    everybody = anyio.Event()
    inside: list[int] = []

    @tool(parallel_safe=True)
    async def child(n: int) -> int:
        return n * n

    @tool(parallel_safe=True)
    async def parent(n: int, ctx: ToolContext[Any]) -> Any:
        inside.append(n)
        if len(inside) == 10:
            everybody.set()
        await everybody.wait()
        return (await ctx.run("child", {"n": n})).value

    async with opened(parent, child, max_parallel=10) as runner:
        results = await runner.run_batch([call("parent", n=n) for n in range(10)])
    assert [result.value for result in results] == [n * n for n in range(10)]


@pytest.mark.case("E24")
async def test_a_child_that_wants_its_parents_lock_or_limit_gets_it() -> None:
    @tool(resources=lambda _: ["db"], max_concurrency=1)
    async def write(depth: int, ctx: ToolContext[Any]) -> int:
        if not depth:
            return 0
        result = await ctx.run("write", {"depth": depth - 1})
        return 1 + int(str(result.value))

    async with opened(write) as runner:
        one, two = await runner.run_batch([call("write", depth=3), call("write", depth=2)])
        assert runner._services is not None
        assert runner._services.leases.held == 0
    assert (one.value, two.value) == (3, 2)


@pytest.mark.case("E24")
async def test_a_childs_lock_keeps_strangers_out_until_the_child_has_ended() -> None:
    stage = Stage()

    @tool(parallel_safe=True, resources=lambda _: ["db"])
    async def write(name: str) -> str:
        return await stage.play(name)

    @tool(parallel_safe=True)
    async def parent(ctx: ToolContext[Any]) -> Any:
        return (await ctx.run("write", {"name": "child"})).value

    async with opened(write, parent) as runner:
        one = runner.start_batch([call("parent")])
        await stage.started("child")
        two = runner.start_batch([call("write", name="stranger")])
        await quiet()
        assert stage.entered == ["child"]
        stage.end("child", "stranger")
        assert (await one)[0].value == "child"
        assert (await two)[0].value == "stranger"
    assert stage.log == ["+child", "-child", "+stranger", "-stranger"]


async def test_a_child_is_a_call_of_its_own_with_its_parents_name_on_it() -> None:
    records: list[Record] = []
    results: list[ToolResult] = []

    @tool
    async def child(ctx: ToolContext[Any]) -> str:
        assert ctx.deps == "the deps"
        return "c"

    @tool
    async def parent(ctx: ToolContext[Any]) -> str:
        results.append(await ctx.run("child"))
        return "p"

    async with opened(parent, child) as runner:
        batch = runner.start_batch([call("parent")], deps="the deps", on_event=records.append)
        (result,) = await batch
        assert runner.result(results[0].run_id) == results[0]
    assert (results[0].name, results[0].parent_run_id, results[0].value) == ("child", result.run_id, "c")
    assert result.parent_run_id is None
    settled = [record.run_id for record in of_type(records, "call/settled")]
    assert settled == [results[0].run_id, result.run_id]


async def test_an_abort_stops_the_whole_tree_and_no_parent_ends_before_its_children() -> None:
    stage, controller, records = Stage(), AbortController(), list[Record]()

    @tool
    async def tree(depth: int, ctx: ToolContext[Any]) -> None:
        if depth:
            await ctx.run("tree", {"depth": depth - 1})
        else:
            await ctx.run("step", {"name": "leaf"})

    async with opened(tree, stage.tools) as runner:
        batch = runner.start_batch([call("tree", depth=2)], signal=controller.signal, on_event=records.append)
        await stage.started("leaf")
        controller.abort("all of it")
        (result,) = await batch
    ended = [record.run_id for record in of_type(records, "call/ended")]
    recorded = [record.run_id for record in of_type(records, "call/recorded")]
    assert ended == list(reversed(recorded))
    assert ended[-1] == result.run_id
    settled = {record.run_id: record.result for record in records if record.type == "call/settled"}
    assert len(settled) == 4
    for child in settled.values():
        assert (child.outcome, child.ended) == ("aborted", "stopped")
        assert child.stop is not None
        assert (child.stop.source, child.stop.reason) == (
            "caller" if child.run_id == result.run_id else "parent",
            "all of it",
        )
    assert result.effects.state == "unknown"


async def test_a_child_that_ignores_its_stop_is_waited_for_by_its_parent() -> None:
    stage, controller = Stage(), AbortController()

    @tool
    async def parent(ctx: ToolContext[Any]) -> None:
        await ctx.run("stubborn", {"name": "a"})

    async with opened(parent, stage.tools) as runner:
        batch = runner.start_batch([call("parent")], signal=controller.signal)
        await stage.started("a")
        controller.abort()
        await quiet()
        assert not batch._run.done.is_set()
        stage.end("a")
        (result,) = await batch
    assert stage.log == ["+a", "!a", "-a"]
    assert (result.outcome, result.ended, result.still_running) == ("aborted", "stopped", ())


async def test_a_parent_that_leaves_its_child_behind_does_not_end_before_it() -> None:
    stage = Stage()

    @tool
    async def parent(ctx: ToolContext[Any]) -> str:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(ctx.run, "step", {"name": "a"})
                await stage.started("a")
                scope.cancel()
        return "did not wait"

    async with opened(parent, stage.tools) as runner:
        batch = runner.start_batch([call("parent")])
        await stage.started("a")
        await quiet()
        assert not batch._run.done.is_set()
        stage.end("a")
        (result,) = await batch
    assert result.value == "did not wait"
    assert stage.log == ["+a", "-a"]


async def test_what_a_child_changed_is_its_parents_too() -> None:
    @tool
    async def child(ctx: ToolContext[Any]) -> None:
        async with ctx.effect("file", "child.txt"):
            pass

    @tool
    async def parent(ctx: ToolContext[Any]) -> None:
        async with ctx.effect("file", "parent.txt"):
            pass
        await ctx.run("child")

    async with opened(parent, child) as runner:
        result = await runner.run("parent")
    assert (result.effects.state, result.effects.evidence) == ("completed", "reported")
    assert sorted(record.target for record in result.effects.records) == ["child.txt", "parent.txt"]
    assert {record.owner is None for record in result.effects.records if record.target == "child.txt"} == {False}


async def test_a_child_of_a_stopped_parent_that_had_not_started_never_does() -> None:
    controller, results = AbortController(), list[ToolResult]()

    @tool
    async def child() -> str:
        raise AssertionError("entered")

    @tool
    async def parent(ctx: ToolContext[Any]) -> None:
        controller.abort("now")
        with ctx.cleanup():
            results.append(await ctx.run("child"))

    async with opened(parent, child) as runner:
        (result,) = await runner.run_batch([call("parent")], signal=controller.signal)
    assert_never_entered(results[0])
    assert results[0].stop is not None
    assert results[0].stop.source == "parent"
    assert result.outcome == "aborted"


async def test_children_that_cannot_be_made_are_results_in_the_parents_hands() -> None:
    seen: list[ToolResult] = []

    @tool
    async def typed(n: int) -> int:
        return n

    @tool
    async def parent(ctx: ToolContext[Any]) -> str:
        seen.append(await ctx.run("nope"))
        seen.append(await ctx.run("typed", {"n": "no number"}))
        return "fine"

    async with opened(parent, typed) as runner:
        result = await runner.run("parent")
    assert [one.code for one in seen] == ["UNKNOWN_TOOL", "INVALID_ARGUMENTS"]
    assert (result.outcome, result.value) == ("succeeded", "fine")


async def test_many_children_at_once_do_not_count_against_the_batchs_pool() -> None:
    stage = Stage()
    names = [f"n{number}" for number in range(5)]

    @tool(parallel_safe=True)
    async def parent(ctx: ToolContext[Any]) -> None:
        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(ctx.run, "step", {"name": name})

    async with opened(parent, stage.tools, max_parallel=1) as runner:
        batch = runner.start_batch([call("parent"), step("after")])
        await stage.started(*names)
        assert "after" not in stage.entered
        stage.end(*names, "after")
        results = await batch
    assert [result.outcome for result in results] == ["succeeded", "succeeded"]
    assert stage.entered[-1] == "after"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
async def test_an_interrupt_out_of_a_child_goes_through_its_parent_to_the_host(error: type[BaseException]) -> None:
    stage = Stage()

    @tool
    async def child() -> None:
        raise error("from the child")

    @tool(parallel_safe=True)
    async def parent(ctx: ToolContext[Any]) -> None:
        await stage.started("beside")
        await ctx.run("child")

    async with opened(parent, child, stage.tools) as runner:
        batch = runner.start_batch([call("parent"), step("beside")])
        with pytest.raises(error, match="from the child"):
            await batch
        results = [runner.result(run_id) for run_id in batch.run_ids]
    assert [(str(result.outcome), result.ended) for result in results] == [("failed", "raised"), ("aborted", "stopped")]
