"""Signals of wrappers: merged with the caller's for the body alone, and whoever aborted first is named."""

from typing import Any

import pytest
from pipeline.bench import (
    FINISHED_FIRST,
    STOPPED,
    SUCCEEDED,
    facts,
    only,
    open_runner,
    stop_of,
    text,
)
from pipeline.wrapped import WRITE, signals, wait, write

from toolrunner import AbortController, AbortSignal, ToolCall, ToolResult
from toolrunner.facts import StopPhase
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio


@pytest.mark.case("T12")
async def test_the_callers_abort_reaches_the_body_past_a_wrappers_signal_which_stays_untouched(gate: Gate) -> None:
    own, caller = AbortController(), AbortController()
    async with open_runner([wait]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            return await go_on(call, signal=own.signal)

        runner.use(wrap)
        batch = runner.start_batch([ToolCall("wait")], signal=caller.signal)
        await gate.reached()
        caller.abort("enough")
        result = only(await batch.results())
    [body] = signals
    assert body is not own.signal
    assert body is not caller.signal
    assert (body.aborted, own.signal.aborted) == (True, False)
    assert body.reason is not None
    assert (body.reason.source, body.reason.text) == ("caller", "enough")
    assert facts(result) == STOPPED
    assert stop_of(result) == ("caller", "enough", StopPhase.RUNNING)


@pytest.mark.case("T12")
async def test_a_wrappers_abort_stops_the_body_under_the_wrappers_name_and_not_the_caller(gate: Gate) -> None:
    own, caller = AbortController(), AbortController()
    async with open_runner([wait, write]) as runner:

        async def limit(call: ToolCall, go_on: Any) -> Any:
            return await go_on(call, signal=own.signal)

        runner.use(limit)
        batch = runner.start_batch([ToolCall("wait")], signal=caller.signal)
        await gate.reached()
        own.abort("too dear")
        result = only(await batch.results())
        assert not caller.signal.aborted
        assert batch._run.signal.reason is None
    assert facts(result) == STOPPED
    assert stop_of(result) == ("wrapper:limit", "too dear", StopPhase.RUNNING)
    assert "from the wrapper limit (too dear)" in text(result)


@pytest.mark.case("T13")
async def test_past_the_wrappers_a_post_hook_is_given_the_callers_signal_again() -> None:
    own, caller = AbortController(), AbortController()
    seen: list[AbortSignal] = []
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            result = await go_on(call, signal=own.signal)
            own.abort("mine alone")
            return result

        async def post(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
            seen.append(signal)
            assert not signal.aborted
            caller.abort("enough")
            assert signal.aborted

        runner.use(wrap)
        runner.post_execute(post)
        result = await runner.run(WRITE, signal=caller.signal)
    [signal] = seen
    assert signal.reason is not None
    assert signal.reason.text == "enough"
    assert facts(result) == FINISHED_FIRST
    assert stop_of(result) == ("caller", "enough", StopPhase.FINISHING)


@pytest.mark.case("T21")
async def test_a_wrappers_signal_is_merged_for_the_body_also_when_nobody_aborts() -> None:
    own, caller = AbortController(), AbortController()
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            return await go_on(call, signal=own.signal)

        runner.use(wrap)
        result = await runner.run(WRITE, signal=caller.signal)
        [body] = signals
        assert body is not own.signal
        assert body is not caller.signal
        assert not body.aborted
        own.abort("late")
        assert body.reason is not None
        assert body.reason.source == "wrapper:wrap"
    assert facts(result) == SUCCEEDED


async def test_the_earliest_of_several_signals_names_the_cause(gate: Gate) -> None:
    outer_own, inner_own = AbortController(), AbortController()
    async with open_runner([wait]) as runner:

        async def outer(call: ToolCall, go_on: Any) -> Any:
            return await go_on(call, signal=outer_own.signal)

        async def inner(call: ToolCall, go_on: Any) -> Any:
            return await go_on(call, signal=inner_own.signal)

        runner.use(outer)
        runner.use(inner)
        caller = AbortController()
        batch = runner.start_batch([ToolCall("wait")], signal=caller.signal)
        await gate.reached()
        inner_own.abort("first")
        outer_own.abort("second")
        caller.abort("third")
        result = only(await batch.results())
    assert stop_of(result) == ("wrapper:inner", "first", StopPhase.RUNNING)
    assert facts(result) == STOPPED
