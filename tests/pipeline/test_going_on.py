"""Going on: however a wrapper calls what is inside it, one body starts at most, and only for its own call."""

from typing import Any

import anyio
import pytest
from pipeline.bench import (
    HOOK_FAILED_AFTER,
    SUCCEEDED,
    WRAPPER_FAILED_BEFORE,
    check_never_started,
    effects,
    facts,
    only,
    open_runner,
)
from pipeline.wrapped import WRITE, order, wait, write

from toolrunner import Reply, ToolCall, ToolResult
from toolrunner.facts import EffectState, Evidence
from toolrunner.pipeline.wrap import NextMisused
from toolrunner.results import Outcome

pytestmark = pytest.mark.anyio


async def test_a_wrapper_that_forgets_to_await_next_starts_no_body() -> None:
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            return go_on(call)

        runner.use(wrap)
        result = await runner.run(WRITE)
    check_never_started(result, WRAPPER_FAILED_BEFORE)
    assert result.error is not None
    assert "await" in result.error.message
    assert order == []


async def test_a_wrapper_that_never_goes_on_and_returns_nothing_starts_no_body() -> None:
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> None:
            return

        runner.use(wrap)
        check_never_started(await runner.run(WRITE), WRAPPER_FAILED_BEFORE)
    assert order == []


@pytest.mark.parametrize("swallowed", [True, False])
async def test_going_on_twice_starts_one_body(swallowed: bool) -> None:
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            result = await go_on(call)
            if not swallowed:
                return await go_on(call)
            with pytest.raises(NextMisused, match="second time"):
                await go_on(call)
            return result

        runner.use(wrap)
        result = await runner.run(WRITE)
    assert order == ["body a"]
    assert (result.value, effects(result)) == ("wrote a", (EffectState.COMPLETED, Evidence.REPORTED))
    assert facts(result) == (SUCCEEDED if swallowed else HOOK_FAILED_AFTER)
    assert swallowed or (result.error is not None and result.error.kind == "next_misused")


async def test_going_on_twice_at_once_starts_one_body() -> None:
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            results: list[ToolResult] = []
            refused: list[NextMisused] = []

            async def one() -> None:
                try:
                    results.append(await go_on(call))
                except NextMisused as error:
                    refused.append(error)

            async with anyio.create_task_group() as group:
                group.start_soon(one)
                group.start_soon(one)
            assert len(refused) == 1
            return only(results)

        runner.use(wrap)
        assert facts(await runner.run(WRITE)) == SUCCEEDED
    assert order == ["body a"]


async def test_going_on_after_the_wrapper_returned_starts_no_body() -> None:
    late: list[Any] = []
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Reply:
            late.append(go_on)
            return Reply("cached")

        runner.use(wrap)
        result = await runner.run(WRITE)
        assert facts(result) == (Outcome.SUCCEEDED, None, False, None)
        with pytest.raises(NextMisused, match="after its wrapper had returned"):
            await late[0](WRITE)
    assert order == []


@pytest.mark.parametrize(
    "other",
    [
        ToolCall("write", {"path": "b"}, call_id="c1"),
        ToolCall("wait", {"path": "a"}, call_id="c1"),
        ToolCall("write", {"path": "a"}, call_id="c1", timeout=1),
        ToolCall("write", {"path": "a"}, call_id="c1", idempotency_key="k"),
        "write",
        None,
    ],
    ids=repr,
)
async def test_going_on_with_another_call_starts_no_body(other: Any) -> None:
    async with open_runner([write, wait]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            return await go_on(other)

        runner.use(wrap)
        result = await runner.run(WRITE)
    check_never_started(result, WRAPPER_FAILED_BEFORE)
    assert result.error is not None
    assert result.error.kind == "next_misused"
    assert order == []
