"""Batches as they go: results one by one, records in order, for hosts that do not just wait."""

from typing import Any

import anyio
import pytest
from batches.stage import Stage, alone, ids, opened, step
from stillness import quiet

from toolrunner import AbortController, Runner, ToolCall, ToolContext, ToolResult, tool
from toolrunner.errors import ConfigError, NotSettled, UnknownRun
from toolrunner.records import Record

pytestmark = pytest.mark.anyio

ONE_CALL = ["call/recorded", "call/decided", "call/dispatched", "call/ended", "call/settled"]


async def test_stream_yields_each_result_when_it_is_committed_in_the_models_order() -> None:
    stage, got = Stage(), list[ToolResult]()
    async with opened(stage.tools) as runner:

        async def read() -> None:
            async for result in runner.stream([step("a"), step("b"), alone("c")]):
                got.append(result)

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await stage.started("a", "b")
            stage.end("b")
            await quiet()
            assert got == []
            stage.end("a")
            await quiet()
            assert ids(got) == ["a", "b"]
            stage.end("c")
    assert ids(got) == ["a", "b", "c"]


async def test_a_stream_that_is_left_early_runs_its_calls_to_their_end() -> None:
    stage = Stage()
    stage.end("a")
    async with opened(stage.tools) as runner:
        stream = runner.stream([step("a"), step("b")])
        assert (await anext(stream)).value == "a"
        await stream.aclose()
        await quiet()
        assert stage.log == ["+a", "-a", "+b"]
        stage.end("b")
        await quiet()
        assert stage.log[-1] == "-b"


async def test_events_are_the_records_of_the_batch_in_order_and_end_with_it() -> None:
    stage, events = Stage(), list[Record]()
    async with opened(stage.tools) as runner:
        stage.end("other", "a", "b")
        batch = runner.start_batch([step("a"), alone("b")])
        await runner.run(step("other"))
        async for record in batch.events():
            events.append(record)
        results = await batch
    assert {record.run_id for record in events} == set(batch.run_ids)
    for result in results:
        assert [record.type for record in events if record.run_id == result.run_id] == ONE_CALL
    assert events[-1].type == "call/settled"
    # Both calls are on record before either is decided on.
    assert [record.type for record in events[:2]] == ["call/recorded", "call/recorded"]


async def test_events_are_live() -> None:
    stage, events = Stage(), list[str]()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a")])

        async def read() -> None:
            async for record in batch.events():
                events.append(record.type)

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await stage.started("a")
            await quiet()
            assert events == ONE_CALL[:3]
            stage.end("a")
    assert events == ONE_CALL


async def test_a_batch_can_be_awaited_by_many_and_more_than_once() -> None:
    stage, seen = Stage(), list[Any]()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a")])

        async def wait() -> None:
            seen.append(await batch)

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            group.start_soon(wait)
            await stage.started("a")
            stage.end("a")
        seen.append(await batch.results())
    assert len(seen) == 3
    assert len({result[0].run_id for result in seen}) == 1


async def test_calls_run_whether_or_not_anybody_waits() -> None:
    stage = Stage()
    stage.end("a")
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a")])
        await quiet()
        assert runner.result(batch.run_ids[0]).value == "a"


async def test_result_tells_running_from_unknown() -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a")])
        await stage.started("a")
        with pytest.raises(NotSettled, match="has not settled yet"):
            runner.result(batch.run_ids[0])
        with pytest.raises(UnknownRun, match="no call with run_id 'nope'"):
            runner.result("nope")
        stage.end("a")
        (result,) = await batch
        assert runner.result(result.run_id) is result


async def test_an_observer_that_raises_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.end("a")

    def broken(_: Record) -> None:
        raise ZeroDivisionError("in the observer")

    async with opened(stage.tools) as runner:
        runner.on_record(broken)
        (result,) = await runner.run_batch([step("a")], on_event=broken)
    assert result.outcome == "succeeded"
    assert "an observer raised at call/recorded" in caplog.text


async def test_an_observer_hears_of_output_and_progress_between_dispatch_and_end() -> None:
    records: list[Record] = []

    @tool
    async def work(ctx: ToolContext[Any]) -> None:
        ctx.output("half\n")
        ctx.progress("nearly", 1, 2)

    async with opened(work) as runner:
        stop = runner.on_record(records.append)
        await runner.run("work")
        stop()
        await runner.run("work")
    assert [record.type for record in records] == [*ONE_CALL[:3], "output", "progress", *ONE_CALL[3:]]


async def test_deps_of_a_batch_win_over_the_runners() -> None:
    @tool
    async def show(ctx: ToolContext[str]) -> str:
        return ctx.deps

    async with opened(show, deps="the runner's") as runner:
        assert (await runner.run("show")).value == "the runner's"
        (result,) = await runner.run_batch([ToolCall("show")], deps="the batch's")
        assert result.value == "the batch's"


async def test_batch_results_say_what_happened_in_a_sentence_and_a_line_each() -> None:
    stage, controller = Stage(), AbortController()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a"), alone("b")], signal=controller.signal)
        await stage.started("a")
        controller.abort("stop")
        results = await batch
    head, first, second = results.summary().splitlines()
    assert head == "2 calls: 2 aborted."
    assert "step was stopped" in first
    assert "alone was stopped before it started" in second
    assert results[0:2] == results.results
    assert list(results) == [results[0], results[1]]


@pytest.mark.parametrize("deadline", [0, -1, float("nan"), float("inf"), True])
async def test_a_deadline_that_is_no_duration_is_refused_before_anything_runs(deadline: float) -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        with pytest.raises(ConfigError, match="deadline is"):
            await runner.run_batch([step("a")], deadline=deadline)
    assert stage.log == []


async def test_unregistering_a_hook_twice_takes_out_no_other() -> None:
    stage, seen = Stage(), list[str]()
    stage.end("a")

    async def hook(call: ToolCall, _: Any) -> None:
        seen.append("hook")

    async with opened(stage.tools) as runner:
        first, second = runner.pre_execute(hook), runner.pre_execute(hook)
        first()
        first()
        await runner.run(step("a"))
        assert seen == ["hook"]
        second()
        await runner.run(step("a"))
    assert seen == ["hook"]


async def test_tools_for_lists_what_can_be_called_now() -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        assert [one["name"] for one in runner.tools_for("anthropic")] == ["step", "alone", "stubborn"]

        @tool
        async def late() -> None: ...

        take_out = runner.register(late)
        assert runner.tools_for("anthropic")[-1]["name"] == "late"
        assert take_out()
        assert len(runner.tools_for("anthropic")) == 3
    assert isinstance(runner, Runner)


@pytest.mark.parametrize("mode", ["hard", "", None, "IMMEDIATE"])
async def test_an_unknown_mode_is_refused_and_stops_no_batch(mode: Any) -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a")])
        with pytest.raises(ConfigError, match="immediate or drain"):
            batch.abort(mode=mode)
        stage.end("a")
        assert (await batch)[0].value == "a"
