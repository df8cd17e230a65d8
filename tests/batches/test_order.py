"""Batches: which calls may overlap, and what is observed in the model's order."""

from collections.abc import Mapping
from typing import Any

import anyio
import pytest
from batches.stage import Stage, alone, ids, of_type, opened, step
from stillness import quiet

from toolrunner import Decision, Runner, ToolCall, ToolResult, tool
from toolrunner.abort import AbortSignal
from toolrunner.errors import ConfigError
from toolrunner.records import Record
from toolrunner.tools import Resource

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


@pytest.mark.case("S7")
@pytest.mark.parametrize("size", [0, 1.5, -1, True, None, "2"])
async def test_a_pool_of_no_whole_number_above_zero_is_refused(size: Any) -> None:
    with pytest.raises(ConfigError, match=r"max_parallel is .*; expected a whole number, 1 or more"):
        Runner([], max_parallel=size)
    with pytest.raises(ConfigError, match=r"max_parallel is .*; expected a whole number, 1 or more"):
        Runner.blocking([], max_parallel=size).__enter__()


@pytest.mark.case("S8")
async def test_the_pool_has_ten_places_when_nobody_says_otherwise() -> None:
    stage = Stage()
    names = [f"n{number}" for number in range(12)]
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step(name) for name in names])
        await stage.started(*names[:10])
        await quiet()
        assert stage.entered == names[:10]
        stage.end(*names)
        assert ids(await batch) == names


@pytest.mark.case("S9")
async def test_the_third_of_four_calls_in_a_pool_of_two_starts_when_the_first_has_ended() -> None:
    stage, records = Stage(), list[Record]()
    async with opened(stage.tools, max_parallel=2) as runner:
        batch = runner.start_batch([step(name) for name in "abcd"], on_event=records.append)
        a, b, c, d = batch.run_ids
        await stage.started("a", "b")
        await quiet()
        assert stage.entered == ["a", "b"]
        stage.end("a")
        await stage.started("c")
        await quiet()
        assert stage.log == ["+a", "+b", "-a", "+c"]
        stage.end("b", "c", "d")
        await batch
    seen = [(record.type, record.run_id) for record in of_type(records, "call/dispatched", "call/ended")]
    assert seen[:4] == [("call/dispatched", a), ("call/dispatched", b), ("call/ended", a), ("call/dispatched", c)]
    assert seen.index(("call/dispatched", d)) > 3


@pytest.mark.case("S10")
async def test_a_pool_of_one_runs_one_call_after_the_other() -> None:
    stage = Stage()
    async with opened(stage.tools, max_parallel=1) as runner:
        batch = runner.start_batch([step(name) for name in "abc"])
        await stage.started("a")
        await quiet()
        assert stage.entered == ["a"]
        stage.end("a", "b", "c")
        await batch
    assert stage.log == ["+a", "-a", "+b", "-b", "+c", "-c"]


@pytest.mark.case("S11")
async def test_every_batch_of_the_runner_has_a_pool_of_the_size_it_was_given() -> None:
    stage = Stage()
    async with opened(stage.tools, max_parallel=2) as runner:
        one = runner.start_batch([step(name) for name in ("a1", "a2", "a3")])
        two = runner.start_batch([step(name) for name in ("b1", "b2", "b3")])
        await stage.started("a1", "a2", "b1", "b2")
        await quiet()
        assert set(stage.entered) == {"a1", "a2", "b1", "b2"}
        stage.end("a1")
        await stage.started("a3")
        await quiet()
        assert "b3" not in stage.entered
        stage.end("a2", "a3", "b1", "b2", "b3")
        assert ids([*await one, *await two]) == ["a1", "a2", "a3", "b1", "b2", "b3"]


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


async def test_a_tools_own_limit_holds_over_all_batches() -> None:
    stage = Stage()

    @tool(parallel_safe=True, max_concurrency=2)
    async def narrow(name: str) -> str:
        return await stage.play(name)

    calls = [ToolCall("narrow", {"name": name}) for name in "abcd"]
    async with opened(stage.tools, narrow) as runner:
        one = runner.start_batch([*calls[:2], step("x")])
        await stage.started("a", "b", "x")
        two = runner.start_batch(calls[2:])
        await quiet()
        assert stage.entered == ["a", "b", "x"]
        stage.end("b")
        await stage.started("c")
        await quiet()
        assert "d" not in stage.entered
        stage.end("a", "c", "d", "x")
        await one
        await two
    assert stage.entered[-1] == "d"


async def test_readers_of_a_resource_share_it_and_a_writer_has_it_alone() -> None:
    stage = Stage()

    @tool(parallel_safe=True, resources=lambda a: [Resource(a["path"], "read")])
    async def read(name: str, path: str) -> str:
        return await stage.play(name)

    @tool(parallel_safe=True, resources=lambda a: [a["path"]])
    async def write(name: str, path: str) -> str:
        return await stage.play(name)

    def call(kind: str, name: str, path: str = "p") -> ToolCall:
        return ToolCall(kind, {"name": name, "path": path}, call_id=name)

    async with opened(read, write) as runner:
        batch = runner.start_batch(
            [call("read", "r1"), call("read", "r2"), call("write", "w1"), call("read", "r3"), call("write", "w2", "q")]
        )
        await stage.started("r1", "r2", "w2")
        await quiet()
        # r3 does not overtake the writer that asked before it; w2 is about something else.
        assert set(stage.entered) == {"r1", "r2", "w2"}
        stage.end("r1")
        await quiet()
        assert "w1" not in stage.entered
        stage.end("r2")
        await stage.started("w1")
        await quiet()
        assert "r3" not in stage.entered
        stage.end("w1", "w2", "r3")
        assert ids(await batch) == ["r1", "r2", "w1", "r3", "w2"]
    assert stage.entered[-1] == "r3"


async def test_locks_hold_between_batches_and_single_calls() -> None:
    stage = Stage()

    @tool(resources=lambda _: ["db"])
    async def write(name: str) -> str:
        return await stage.play(name)

    async with opened(write) as runner:
        one = runner.start_batch([ToolCall("write", {"name": "a"})])
        await stage.started("a")  # which of two new tasks runs first is the loop's choice, and trio's is random
        two = runner.start_batch([ToolCall("write", {"name": "b"})])
        await quiet()
        assert stage.entered == ["a"]
        stage.end("a", "b")
        await one
        await two
    assert stage.log == ["+a", "-a", "+b", "-b"]


async def test_two_calls_that_want_two_locks_in_opposite_order_both_end() -> None:
    @tool(parallel_safe=True, resources=lambda a: list(a["keys"]))
    async def write(keys: list[str]) -> list[str]:
        await anyio.lowlevel.checkpoint()
        return keys

    orders = [["x", "y"], ["y", "x"]] * 20
    async with opened(write) as runner:
        results = await runner.run_batch([ToolCall("write", {"keys": keys}) for keys in orders])
    assert [result.value for result in results] == orders


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
