"""The task that awaits a call is cancelled: the bodies are the runner's, so they end in it, and their results can be had."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from batches.stage import Stage, alone, assert_never_entered, of_type, opened, step, stubborn, text
from stillness import quiet

from toolrunner import Runner
from toolrunner.errors import ConfigError, NotSettled
from toolrunner.records import Record

pytestmark = [pytest.mark.anyio, pytest.mark.case("E12")]

native = pytest.mark.parametrize("anyio_backend", [pytest.param(("asyncio", {"debug": True}), id="asyncio")])
"""Cancelling a task natively is asyncio's own."""


class Ids:
    """Learns the run ids of what is submitted, as a host with an observer would."""

    def __init__(self, runner: Runner) -> None:
        self.records: list[Record] = []
        runner.on_record(self.records.append)

    def __getitem__(self, index: int) -> str:
        return of_type(self.records, "call/recorded")[index].run_id


@native
async def test_a_native_cancel_aborts_waits_for_the_body_and_is_raised_on_unchanged() -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        ids = Ids(runner)
        task = asyncio.create_task(runner.run_batch([stubborn("a"), alone("b")]))
        await stage.started("a")
        task.cancel("the host's own words")
        await quiet()
        # The body was told, by the runner's abort and not by the host's cancel; it is waited for.
        assert stage.log == ["+a", "!a"]
        assert not task.done()
        stage.end("a")
        with pytest.raises(asyncio.CancelledError, match="the host's own words"):
            await task
        first, second = runner.result(ids[0]), runner.result(ids[1])
    assert (first.outcome, first.code, first.ended, first.value) == ("aborted", "ABORTED", "returned", "a")
    assert first.stop is not None
    assert (first.stop.source, first.stop.phase) == ("host", "running")
    assert "finished before it could be stopped" in text(first)
    assert_never_entered(second)


@native
@pytest.mark.parametrize("single", [True, False], ids=["run", "run_batch"])
async def test_wait_for_around_a_call_leaves_its_result_with_the_runner(single: bool) -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        ids = Ids(runner)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(runner.run(step("a")) if single else runner.run_batch([step("a")]), 0.05)
        # Its body was over before the error was raised: nothing runs behind the host's back.
        assert stage.log == ["+a", "!a"]
        assert runner.result(ids[0]).outcome == "aborted"
        # The waiting task is whole again: what it awaits next is not cancelled by what was.
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        stage.end("b")
        assert (await runner.run(step("b"))).value == "b"


@native
async def test_a_second_native_cancel_stops_the_waiting_and_not_the_body() -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        ids = Ids(runner)
        task = asyncio.create_task(runner.run_batch([stubborn("a")]))
        await stage.started("a")
        task.cancel("first")
        await quiet()
        assert not task.done()
        task.cancel("second")
        with pytest.raises(asyncio.CancelledError, match="first"):
            await task
        with pytest.raises(NotSettled):
            runner.result(ids[0])
        stage.end("a")
        await quiet()
        assert runner.result(ids[0]).value == "a"


@native
async def test_a_native_cancel_of_a_detached_wait_comes_back_at_once_and_aborts_nothing() -> None:
    stage = Stage()
    async with opened(stage.tools, on_host_cancel="detach") as runner:
        ids = Ids(runner)
        task = asyncio.create_task(runner.run_batch([step("a"), alone("b")]))
        await stage.started("a")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await quiet()
        assert stage.log == ["+a"]
        with pytest.raises(NotSettled):
            runner.result(ids[0])
        stage.end("a", "b")
        await quiet()
        assert (runner.result(ids[0]).value, runner.result(ids[1]).value) == ("a", "b")
        assert runner.result(ids[1]).stop is None


@native
async def test_a_task_that_is_cancelled_before_its_first_step_has_submitted_nothing() -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        ids = Ids(runner)
        task = asyncio.create_task(runner.run_batch([step("a")]))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await quiet()
        assert ids.records == []
        assert stage.log == []


WAYS: dict[str, Callable[[Runner], Awaitable[Any]]] = {
    "run": lambda runner: runner.run(stubborn("a")),
    "run_batch": lambda runner: runner.run_batch([stubborn("a")]),
    "results": lambda runner: runner.start_batch([stubborn("a")]).results(),
    "stream": lambda runner: _streamed(runner),  # noqa: PLW0108 - it is defined below
}


async def _streamed(runner: Runner) -> None:
    async for _ in runner.stream([stubborn("a")]):
        pass


@pytest.mark.parametrize("way", WAYS)
async def test_a_cancelled_scope_aborts_waits_for_the_body_and_ends_the_scope(way: str) -> None:
    stage, over = Stage(), anyio.Event()
    async with opened(stage.tools) as runner:
        ids = Ids(runner)

        async def host(scope: anyio.CancelScope) -> None:
            with scope:
                await WAYS[way](runner)
            over.set()

        scope = anyio.CancelScope()
        async with anyio.create_task_group() as group:
            group.start_soon(host, scope)
            await stage.started("a")
            scope.cancel()
            while "!a" not in stage.log:  # told by the runner, in its own task
                await anyio.lowlevel.checkpoint()
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert not over.is_set()
            stage.end("a")
        assert scope.cancelled_caught
        result = runner.result(ids[0])
    assert (result.outcome, result.ended, result.value) == ("aborted", "returned", "a")
    assert result.stop is not None
    assert result.stop.source == "host"


async def test_a_cancelled_scope_of_a_detached_wait_ends_at_once_and_aborts_nothing() -> None:
    stage = Stage()
    async with opened(stage.tools, on_host_cancel="detach") as runner:
        ids = Ids(runner)
        with anyio.move_on_after(0.05) as scope:
            await runner.run_batch([step("a")])
        assert scope.cancelled_caught
        await quiet()
        assert stage.log == ["+a"]
        stage.end("a")
        await quiet()
        assert runner.result(ids[0]).outcome == "succeeded"


@pytest.mark.virtual_time
async def test_the_wait_of_a_cancelled_host_is_bounded() -> None:
    stage = Stage()
    async with opened(stage.tools, host_cancel_wait=0.1) as runner:
        ids = Ids(runner)
        with anyio.move_on_after(0.05) as scope:
            await runner.run_batch([stubborn("a")])
        assert scope.cancelled_caught
        with pytest.raises(NotSettled):
            runner.result(ids[0])
        stage.end("a")
        await quiet()
        assert runner.result(ids[0]).value == "a"


async def test_waiting_for_a_stopped_call_costs_no_processor_time() -> None:
    stage = Stage()
    async with opened(stage.tools, host_cancel_wait=0.5) as runner:
        with anyio.move_on_after(0.01):
            before = time.process_time()
            await runner.run_batch([stubborn("a")])
        used = time.process_time() - before
        stage.end("a")
    # Half a second of waiting. A scope that redelivers its cancel in every turn of the loop would use all of it.
    assert used < 0.2


async def test_a_batch_is_not_cancelled_by_the_scope_it_was_started_in() -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        with anyio.CancelScope() as scope:
            batch = runner.start_batch([step("a")])
            scope.cancel()
            await anyio.lowlevel.checkpoint()
        await quiet()
        assert stage.log == ["+a"]
        stage.end("a")
        assert (await batch)[0].value == "a"


async def test_a_task_group_that_is_cancelled_around_several_waits_loses_no_result() -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        ids = Ids(runner)
        async with anyio.create_task_group() as group:
            for name in "abc":
                group.start_soon(runner.run, step(name))
            await stage.started("a", "b", "c")
            group.cancel_scope.cancel()
        assert {runner.result(ids[number]).outcome for number in range(3)} == {"aborted"}
    assert sorted(stage.log) == ["!a", "!b", "!c", "+a", "+b", "+c"]


@pytest.mark.parametrize("word", ["abandon", "", None, True])
async def test_another_word_for_what_a_cancel_means_is_refused(word: Any) -> None:
    with pytest.raises(ConfigError, match="on_host_cancel"):
        Runner([], on_host_cancel=word)
