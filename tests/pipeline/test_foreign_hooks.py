"""Hooks that answer with nonsense, hang, or are registered more than once: what is no answer starts nothing."""

import itertools
from typing import Any

import anyio
import pytest
from pipeline.bench import DENIED, PRE_HOOK_FAILED, Coded, check_never_started, open_runner
from pipeline.failing import entered, fail

from toolrunner import AbortSignal, ToolCall, ToolResult, ask
from toolrunner.results import ErrorKind

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("answer", [True, "allow", {"kind": "allow"}, 0, object()], ids=lambda answer: type(answer).__name__)
async def test_an_answer_of_a_pre_hook_that_is_none_starts_nothing(answer: Any) -> None:
    async with open_runner([fail]) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> Any:
            return answer

        runner.pre_execute(pre)
        check_never_started(await runner.run("fail"), PRE_HOOK_FAILED)
    assert entered == []


async def test_a_pre_hook_that_is_no_coroutine_function_starts_nothing() -> None:
    async with open_runner([fail]) as runner:
        runner.pre_execute(lambda call, signal: None)  # type: ignore[arg-type,return-value]
        check_never_started(await runner.run("fail"), PRE_HOOK_FAILED)
    assert entered == []


@pytest.mark.virtual_time
async def test_a_pre_hook_that_hangs_starts_nothing_and_may_be_tried_again() -> None:
    async with open_runner([fail], hook_timeout=0.05) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> None:
            await anyio.sleep_forever()

        runner.pre_execute(pre)
        result = await runner.run("fail")
    check_never_started(result, PRE_HOOK_FAILED)
    assert result.error is not None
    assert (result.error.kind, result.retry, entered) == (ErrorKind.HOOK_TIMEOUT, "safe", [])


async def test_a_guard_that_was_written_async_denies() -> None:
    """Its coroutine is no text and no None; letting it pass would be a guard that guards nothing."""

    async def guard(call: ToolCall) -> None:
        raise AssertionError("never awaited")

    async with open_runner([fail]) as runner:
        runner.guard(guard)  # type: ignore[arg-type]
        result = await runner.run("fail")
    check_never_started(result, PRE_HOOK_FAILED)
    assert result.error is not None
    assert "is no coroutine function" in result.error.message
    assert entered == []


async def test_denials_stay_denials_whatever_post_hooks_do() -> None:
    async with open_runner([fail]) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> Any:
            return ask("is that wise?")

        async def post(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
            raise Coded("broken")

        runner.pre_execute(pre)
        runner.post_execute(post)
        result = await runner.run("fail")
    check_never_started(result, DENIED)
    assert result.error is not None
    assert result.error.kind == ErrorKind.APPROVER_UNAVAILABLE
    assert entered == []


async def test_each_registration_is_taken_out_by_what_it_returned_and_only_once() -> None:
    count = itertools.count()
    async with open_runner([fail]) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> None:
            next(count)

        first, second = runner.pre_execute(pre), runner.pre_execute(pre)
        await runner.run("fail")
        assert next(count) == 2
        first()
        first()
        await runner.run("fail")
        assert next(count) == 4
        second()
        await runner.run("fail")
        assert next(count) == 5
