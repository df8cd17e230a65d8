"""Batches: which calls may overlap, and what is observed in the model's order."""

from collections.abc import Mapping
from typing import Any

import anyio
import pytest
from batches.stage import Stage, alone, ids, of_type, opened, step
from stillness import quiet

from toolrunner import Decision, Runner, ToolCall, ToolResult, tool
from toolrunner.abort import AbortSignal
from toolrunner.records import Record

pytestmark = pytest.mark.anyio


@pytest.mark.case("S1")
async def test_calls_that_may_overlap_all_start_before_one_of_them_ends() -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a"), step("b"), step("c")])
        await stage.started("a", "b", "c")
        assert stage.log == ["+a", "+b", "+c"]
        stage.end("a", "b", "c")
        assert [result.value for result in await batch] == ["a", "b", "c"]


@pytest.mark.case("S2")
async def test_an_exclusive_call_waits_for_those_before_it_and_is_waited_for_by_those_after_it() -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a"), step("b"), alone("x"), step("c"), step("d")])
        await stage.started("a", "b")
        stage.end("a")
        await quiet()
        assert stage.log == ["+a", "+b", "-a"]
        stage.end("b")
        await stage.started("x")
        await quiet()
        assert stage.entered == ["a", "b", "x"]
        stage.end("x", "c", "d")
        results = await batch
    assert ids(results) == ["a", "b", "x", "c", "d"]
    assert stage.log.index("-x") < min(stage.log.index("+c"), stage.log.index("+d"))


@pytest.mark.case("S3")
async def test_calls_after_one_that_replaced_their_tool_are_scheduled_by_the_new_definition() -> None:
    stage = Stage()
    runners: list[Runner] = []

    @tool(name="step", parallel_safe=False)
    async def step_alone(name: str) -> str:
        return await stage.play(name)

    @tool
    async def swap() -> str:
        runners[0].replace(step_alone)
        return "swapped"

    async with opened(stage.tools, swap) as runner:
        runners.append(runner)
        batch = runner.start_batch([ToolCall("swap"), step("a"), step("b")])
        await stage.started("a")
        await quiet()
        assert stage.entered == ["a"]
        stage.end("a", "b")
        results = await batch
    assert stage.log == ["+a", "-a", "+b", "-b"]
    assert [result.outcome for result in results] == ["succeeded"] * 3


@pytest.mark.case("S4")
async def test_a_call_that_turns_exclusive_in_mid_pool_waits_until_the_pool_has_drained() -> None:
    stage = Stage()
    parallel = True

    @tool(parallel_safe=lambda _: parallel)
    async def fickle(name: str) -> str:
        return await stage.play(name)

    def observe(record: Record) -> None:
        nonlocal parallel
        if record.type == "call/ended":
            parallel = False

    async with opened(stage.tools, fickle, max_parallel=2) as runner:
        calls = [step("a"), step("b"), ToolCall("fickle", {"name": "x"}, call_id="x"), step("c")]
        batch = runner.start_batch(calls, on_event=observe)
        await stage.started("a", "b")
        stage.end("a")
        await quiet()
        assert stage.log == ["+a", "+b", "-a"]
        stage.end("b")
        await stage.started("x")
        await quiet()
        assert stage.entered == ["a", "b", "x"]
        stage.end("x", "c")
        assert ids(await batch) == ["a", "b", "x", "c"]


@pytest.mark.parametrize("answer", [1, "yes", None, False, object()])
async def test_only_an_exact_true_means_that_a_call_may_overlap_others(answer: object) -> None:
    stage = Stage()

    @tool(parallel_safe=lambda _: answer)
    async def maybe(name: str) -> str:
        return await stage.play(name)

    async with opened(maybe) as runner:
        batch = runner.start_batch([ToolCall("maybe", {"name": "a"}), ToolCall("maybe", {"name": "b"})])
        await stage.started("a")
        await quiet()
        assert stage.entered == ["a"]
        stage.end("a", "b")
        await batch
    assert stage.log == ["+a", "-a", "+b", "-b"]


async def test_a_parallel_safe_that_raises_means_alone_and_loses_no_call() -> None:
    stage = Stage()

    def broken(_: Mapping[str, Any]) -> bool:
        raise ZeroDivisionError

    @tool(parallel_safe=broken)
    async def maybe(name: str) -> str:
        return await stage.play(name)

    stage.end("a", "b")
    async with opened(maybe) as runner:
        results = await runner.run_batch([ToolCall("maybe", {"name": "a"}), ToolCall("maybe", {"name": "b"})])
    assert stage.log == ["+a", "-a", "+b", "-b"]
    assert [result.value for result in results] == ["a", "b"]


@pytest.mark.case("S5")
async def test_nothing_is_committed_before_the_result_of_an_earlier_call() -> None:
    stage, records = Stage(), list[Record]()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a"), step("b")], on_event=records.append)
        first, second = batch.run_ids
        await stage.started("a", "b")
        stage.end("b")
        await quiet()
        assert stage.log == ["+a", "+b", "-b"]
        # Its end is a fact at once; its result waits for the model's order.
        assert [record.run_id for record in of_type(records, "call/ended")] == [second]
        assert of_type(records, "call/settled") == []
        stage.end("a")
        await batch
    assert [record.run_id for record in of_type(records, "call/ended")] == [second, first]
    assert [record.run_id for record in of_type(records, "call/settled")] == [first, second]


@pytest.mark.case("S6")
async def test_what_the_model_is_shown_pairs_calls_and_results_in_its_order() -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a"), step("b"), step("c")])
        await stage.started("a", "b", "c")
        for name in ("c", "b", "a"):
            stage.end(name)
            await quiet()
        results = await batch
    assert stage.log[3:] == ["-c", "-b", "-a"]
    messages = results.to_messages("openai_chat")
    assert [(message["tool_call_id"], message["content"]) for message in messages] == [("a", "a"), ("b", "b"), ("c", "c")]


@pytest.mark.case("S12")
async def test_hooks_before_and_after_see_calls_in_the_models_order() -> None:
    stage, seen = Stage(), list[str]()

    async def before(call: ToolCall, _: AbortSignal) -> None:
        seen.append(f"pre {call.call_id}")

    async def after(call: ToolCall, _: ToolResult, __: AbortSignal) -> None:
        seen.append(f"post {call.call_id}")

    async with opened(stage.tools) as runner:
        runner.pre_execute(before)
        runner.post_execute(after)
        batch = runner.start_batch([step(name) for name in "abc"])
        await stage.started("a", "b", "c")
        for name in "cba":
            stage.end(name)
            await quiet()
            assert [line for line in seen if line.startswith("post")] == ([] if name != "a" else ["post a", "post b", "post c"])
        await batch
    assert seen == ["pre a", "pre b", "pre c", "post a", "post b", "post c"]


async def test_the_next_call_is_hooked_only_when_the_hooks_of_the_one_before_have_had_their_say() -> None:
    stage, seen = Stage(), list[str]()
    gate = anyio.Event()

    async def before(call: ToolCall, _: AbortSignal) -> None:
        seen.append(f"in {call.call_id}")
        if call.call_id == "a":
            await gate.wait()
        seen.append(f"out {call.call_id}")

    stage.end("a", "b")
    async with opened(stage.tools) as runner:
        runner.pre_execute(before)
        batch = runner.start_batch([step("a"), step("b")])
        await quiet()
        assert seen == ["in a"]
        gate.set()
        await batch
    assert seen == ["in a", "out a", "in b", "out b"]


@pytest.mark.case("S13")
async def test_follow_ups_come_in_the_models_order_whatever_ended_first() -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step(name) for name in "abc"])
        await stage.started("a", "b", "c")
        for name in "cba":
            stage.end(name)
            await quiet()
        results = await batch
    assert stage.log[3:] == ["-c", "-b", "-a"]
    assert [value for result in results for value in result.follow_up] == ["of a", "of b", "of c"]
    # They are for the program around the model: none stands between the results that the model reads.
    assert [message["content"] for message in results.to_messages("openai_chat")] == ["a", "b", "c"]


@pytest.mark.case("S14")
async def test_one_allowed_one_denied_and_one_whose_hook_raised_give_one_body_and_three_results() -> None:
    stage, seen = Stage(), list[str | None]()

    async def before(call: ToolCall, _: AbortSignal) -> Decision | None:
        match call.call_id:
            case "b":
                return Decision.deny("not today")
            case "c":
                raise ZeroDivisionError("in the hook")
        return None

    async def after(call: ToolCall, _: ToolResult, __: AbortSignal) -> None:
        seen.append(call.call_id)

    stage.end("a", "b", "c")
    async with opened(stage.tools) as runner:
        runner.pre_execute(before)
        runner.post_execute(after)
        a, b, c = await runner.run_batch([step(name) for name in "abc"])
    assert stage.entered == ["a"]
    assert seen == ["a", "b"]
    assert (a.outcome, a.code, a.started) == ("succeeded", None, True)
    assert (b.outcome, b.code, b.started, b.error and b.error.message) == ("denied", "DENIED", False, "not today")
    assert (c.outcome, c.code, c.started) == ("rejected", "HOOK_ERROR", False)
    assert c.error is not None
    assert "ZeroDivisionError: in the hook" in c.error.message


async def test_an_empty_batch_has_no_results_and_no_trouble() -> None:
    async with opened() as runner:
        results = await runner.run_batch([])
    assert (len(results), results.stopped, results.still_running, results.to_messages("openai_chat")) == (0, None, (), [])


async def test_a_siblings_failure_cancels_nothing() -> None:
    stage = Stage()

    @tool(parallel_safe=True)
    async def fail() -> None:
        raise ValueError("mine")

    async with opened(stage.tools, fail) as runner:
        batch = runner.start_batch([step("a"), ToolCall("fail"), step("b"), alone("x")])
        await stage.started("a", "b")
        await quiet()
        stage.end("a", "b", "x")
        results = await batch
    assert [str(result.outcome) for result in results] == ["succeeded", "failed", "succeeded", "succeeded"]
    assert results.stopped is None
