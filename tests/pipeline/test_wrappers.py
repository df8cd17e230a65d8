"""Wrappers: the order they stand in, the results they see and give, and what becomes of a call whose wrapper misbehaves."""

from dataclasses import replace as changed
from typing import Any

import pytest
from pipeline.bench import (
    HOOK_FAILED_AFTER,
    RAISED,
    SUCCEEDED,
    WRAPPER_FAILED_BEFORE,
    check_never_started,
    check_stopped_early,
    effects,
    facts,
    only,
    open_runner,
    stopped_at,
    text,
)
from pipeline.wrapped import WRITE, order, write

from toolrunner import AbortSignal, Reply, ToolCall, ToolError, ToolResult, tool
from toolrunner.facts import EffectState, Evidence, Text
from toolrunner.results import Code, ErrorKind, Outcome, result_to_dict
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio


@pytest.mark.case("T18")
async def test_what_a_body_raises_is_a_result_before_wrappers_and_post_hooks_see_it() -> None:
    seen: list[ToolResult] = []

    @tool
    async def fail() -> None:
        """Fail."""
        raise ToolError("no such table", kind="sql")

    async with open_runner([fail]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            seen.append(await go_on(call))
            return seen[0]

        async def post(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
            seen.append(result)

        runner.use(wrap)
        runner.post_execute(post)
        result = await runner.run("fail")
    assert [facts(one) for one in (*seen, result)] == [RAISED] * 3
    assert [one.error for one in seen] == [result.error] * 2
    assert result.error is not None
    assert (result.error.kind, result.error.message) == ("sql", "no such table")


@pytest.mark.case("T20")
async def test_the_order_is_pre_then_wrapper_in_then_body_then_wrapper_out_then_post() -> None:
    async with open_runner([write]) as runner:

        def pre(name: str) -> Any:
            async def hook(call: ToolCall, signal: AbortSignal) -> None:
                order.append(f"pre {name}")

            return hook

        def post(name: str) -> Any:
            async def hook(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
                order.append(f"post {name}")

            return hook

        def wrapper(name: str) -> Any:
            async def wrap(call: ToolCall, go_on: Any) -> Any:
                order.append(f"in {name}")
                result = await go_on(call)
                order.append(f"out {name}")
                return result

            return wrap

        for name in ("1", "2"):
            runner.post_execute(post(name))
            runner.use(wrapper(name))
            runner.pre_execute(pre(name))
            runner.guard(lambda call, name=name: order.append(f"guard {name}"))  # type: ignore[misc]
        result = await runner.run(WRITE)
    assert facts(result) == SUCCEEDED
    rows = ["pre 1", "pre 2", "guard 1", "guard 2", "in 1", "in 2", "body a", "out 2", "out 1", "post 1", "post 2"]
    assert order == rows


@pytest.mark.case("T22")
async def test_another_calls_result_becomes_this_calls_own_and_says_whose_it_was() -> None:
    async with open_runner([write]) as runner:
        first = await runner.run(WRITE)

        async def cache(call: ToolCall, go_on: Any) -> ToolResult:
            return first

        runner.use(cache)
        second = await runner.run(ToolCall("write", {"path": "b"}, call_id="c2"))
    assert order == ["body a"]
    assert facts(second) == (Outcome.SUCCEEDED, None, False, None)
    assert effects(second) == (EffectState.NONE, Evidence.NOT_STARTED)
    assert (second.call_id, second.arguments, second.run_id != first.run_id) == ("c2", {"path": "b"}, True)
    assert (second.about_run_id, second.replayed) == (first.run_id, True)
    assert (second.value, second.content) == (first.value, first.content)
    assert second.effects.records == ()
    assert first.run_id in text(second)


@pytest.mark.case("T22")
async def test_another_calls_failed_result_is_no_success_of_this_one() -> None:
    @tool
    async def fail() -> None:
        """Fail."""
        raise ToolError("no such table", kind="sql")

    async with open_runner([write, fail]) as runner:
        failed = await runner.run("fail")

        async def cache(call: ToolCall, go_on: Any) -> ToolResult:
            return failed

        runner.use(cache)
        result = await runner.run(WRITE)
    check_never_started(result, WRAPPER_FAILED_BEFORE)
    assert result.error == failed.error
    assert order == []


@pytest.mark.case("T22")
async def test_a_body_that_ran_is_not_called_a_replay_because_its_wrapper_showed_another_result() -> None:
    async with open_runner([write]) as runner:
        first = await runner.run(WRITE)

        async def cache(call: ToolCall, go_on: Any) -> ToolResult:
            await go_on(call)
            return first

        runner.use(cache)
        second = await runner.run(ToolCall("write", {"path": "b"}))
    assert order == ["body a", "body b"]
    assert facts(second) == SUCCEEDED
    assert (second.about_run_id, second.replayed, second.value) == (first.run_id, False, "wrote a")
    assert [record.target for record in second.effects.records] == ["b"]
    assert "nothing was run" not in text(second)
    assert "nothing was run" not in second.summary()


def bad_answers() -> list[Any]:
    return [
        pytest.param(lambda result: None, id="None"),
        pytest.param(lambda result: object(), id="object"),
        pytest.param(lambda result: 5, id="not what the annotation says"),
        pytest.param(lambda result: Reply(object()), id="Reply of no JSON"),  # type: ignore[arg-type]
        pytest.param(lambda result: Reply("ok", ("text",)), id="Reply without content"),  # type: ignore[arg-type]
        pytest.param(lambda result: Reply("ok", (), (float("nan"),)), id="NaN to follow up"),
        pytest.param(lambda result: Reply("\udc80"), id="no UTF-8"),
        pytest.param(lambda result: changed(result, value=object()), id="changed result"),
    ]


@pytest.mark.parametrize("answer", bad_answers())
async def test_an_answer_that_is_none_fails_the_call_and_keeps_what_its_body_said(answer: Any) -> None:
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            return answer(await go_on(call))

        runner.use(wrap)
        result = await runner.run(WRITE)
    assert facts(result) == HOOK_FAILED_AFTER
    assert (result.value, result.content) == ("wrote a", (Text("wrote a"),))
    assert effects(result) == (EffectState.COMPLETED, Evidence.REPORTED)
    assert result.error is not None
    assert result.error.kind == ErrorKind.HOOK
    assert "wrapper 'wrap' returned" in result.error.message


async def test_an_inner_wrappers_error_is_a_result_for_the_outer_one() -> None:
    seen: list[ToolResult] = []
    async with open_runner([write]) as runner:

        async def outer(call: ToolCall, go_on: Any) -> Any:
            seen.append(await go_on(call))
            return Reply("all is well")

        async def inner(call: ToolCall, go_on: Any) -> Any:
            await go_on(call)
            raise ToolError("cannot count", kind="meter")

        runner.use(outer)
        runner.use(inner)
        result = await runner.run(WRITE)
    assert facts(only(seen)) == HOOK_FAILED_AFTER
    assert facts(result) == HOOK_FAILED_AFTER  # facts are not a wrapper's to change
    assert result.error is not None
    assert (result.error.kind, result.value) == ("meter", "all is well")


async def test_an_answer_in_the_bodys_place_is_a_success_that_never_started() -> None:
    async with open_runner([write]) as runner:

        async def mock(call: ToolCall, go_on: Any) -> str:
            return "mocked"

        runner.use(mock)
        result = await runner.run(WRITE)
    assert facts(result) == (Outcome.SUCCEEDED, None, False, None)
    assert effects(result) == (EffectState.NONE, Evidence.NOT_STARTED)
    assert (result.value, result.is_error, result.attempts, result.replayed) == ("mocked", False, 0, False)
    assert result_to_dict(result)["started"] is False
    assert order == []


async def test_after_the_answer_of_a_wrapper_an_abort_makes_it_a_call_that_never_started() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def mock(call: ToolCall, go_on: Any) -> str:
            return "mocked"

        async def post(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
            await gate.wait()

        runner.use(mock)
        runner.post_execute(post)
        result = await stopped_at(runner, gate, WRITE)
    check_stopped_early(result)
    assert (result.value, result.code) == ("mocked", Code.ABORTED_BEFORE_DISPATCH)
