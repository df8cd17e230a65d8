"""Wrappers that leave, cancel or hang around an open call: the body is awaited, and the wrapper's own waiting is bounded."""

import asyncio
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
    stop_of,
    stopped_at,
)
from pipeline.wrapped import WRITE, order, wait, write
from stillness import all_blocked

from toolrunner import Reply, ToolCall, ToolResult
from toolrunner.facts import EffectState, Evidence, StopPhase
from toolrunner.results import ErrorKind
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio


async def test_a_wrapper_that_leaves_while_its_body_runs_is_overruled(gate: Gate) -> None:
    """The body is awaited, its facts are the result's, whatever the wrapper returned meanwhile."""
    async with open_runner([wait]) as runner:
        tasks: list[Any] = []

        async def wrap(call: ToolCall, go_on: Any) -> Reply:
            runner._services.root.spawn(lambda: go_on(call), "left behind")  # type: ignore[union-attr]
            await gate.reached()
            return Reply("too early", follow_up=("kept",))

        runner.use(wrap)
        batch = runner.start_batch([ToolCall("wait")])
        await gate.reached()
        await all_blocked()
        assert not batch._run.done.is_set()
        gate.open()
        result = only(await batch.results())
        assert tasks == []
    assert facts(result) == SUCCEEDED
    assert (result.value, result.follow_up) == ("too early", ("kept",))


@pytest.mark.parametrize("anyio_backend", [pytest.param(("asyncio", {"debug": True}), id="asyncio")])
async def test_a_wrappers_native_clock_only_listens(gate: Gate, anyio_backend: object) -> None:
    """`wait_for` cancels natively: the body goes on, the batch is not stopped, and nobody claims that the loop ended."""
    async with open_runner([wait, write]) as runner:
        cancelled = anyio.Event()

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            waiter = asyncio.create_task(go_on(call))
            await gate.reached()
            waiter.cancel()
            await all_blocked()
            cancelled.set()
            return await waiter

        unregister = runner.use(wrap)
        batch = runner.start_batch([ToolCall("wait")])
        await cancelled.wait()
        assert not batch._run.signal.aborted
        gate.open()
        result = only(await batch.results())
        assert facts(result) == SUCCEEDED
        assert (result.value, result.stop) == ("done", None)
        unregister()
        assert facts(await runner.run(WRITE)) == SUCCEEDED


async def test_a_wrappers_scope_around_next_only_listens(gate: Gate) -> None:
    async with open_runner([wait]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            with anyio.CancelScope() as scope:
                scopes.append(scope)
                results.append(await go_on(call))
            return results[0]

        scopes: list[anyio.CancelScope] = []
        results: list[ToolResult] = []
        runner.use(wrap)
        batch = runner.start_batch([ToolCall("wait")])
        await gate.reached()
        scopes[0].cancel()
        await all_blocked()
        assert not batch._run.done.is_set()
        gate.open()
        result = only(await batch.results())
    assert facts(result) == SUCCEEDED
    assert (result.value, result.stop) == ("done", None)


@pytest.mark.virtual_time
async def test_a_wrapper_that_hangs_after_the_body_is_a_failure_at_its_bound() -> None:
    async with open_runner([write], hook_timeout=0.05) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            await go_on(call)
            await anyio.sleep_forever()

        runner.use(wrap)
        result = await runner.run(WRITE)
    assert facts(result) == HOOK_FAILED_AFTER
    assert result.error is not None
    assert result.error.kind == ErrorKind.HOOK_TIMEOUT
    assert (result.value, effects(result)) == ("wrote a", (EffectState.COMPLETED, Evidence.REPORTED))


@pytest.mark.virtual_time
async def test_a_wrapper_that_hangs_before_the_body_is_bounded_once_an_abort_came() -> None:
    async with open_runner([write], hook_timeout=0.05) as runner:
        gate = Gate()

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            await gate.wait()
            await anyio.sleep_forever()

        runner.use(wrap)
        result = await stopped_at(runner, gate, WRITE)
    check_never_started(result, WRAPPER_FAILED_BEFORE)
    assert result.error is not None
    assert result.error.kind == ErrorKind.HOOK_TIMEOUT
    assert stop_of(result) == ("caller", "enough", StopPhase.BEFORE_DISPATCH)
    assert order == []


@pytest.mark.virtual_time
async def test_a_wrapper_may_wait_longer_than_hooks_may_while_nobody_aborts(gate: Gate) -> None:
    """It may be a queue; and while its inside runs it waits for that."""
    async with open_runner([wait], hook_timeout=0.01) as runner:
        before = Gate()

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            await before.wait()
            return await go_on(call)

        runner.use(wrap)
        batch = runner.start_batch([ToolCall("wait")])
        await before.reached()
        await anyio.sleep(0.03)  # a test of time: three times the bound
        before.open()
        await gate.reached()
        await anyio.sleep(0.03)
        gate.open()
        assert facts(only(await batch.results())) == SUCCEEDED


async def test_an_unregistered_wrapper_still_ends_the_calls_that_it_is_in(gate: Gate) -> None:
    async with open_runner([wait]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            order.append("in")
            result = await go_on(call)
            order.append("out")
            return result

        unregister = runner.use(wrap)
        batch = runner.start_batch([ToolCall("wait")])
        await gate.reached()
        unregister()
        unregister()
        gate.open()
        await batch.results()
        assert order == ["in", "out"]
        await runner.run("wait")
    assert order == ["in", "out"]
