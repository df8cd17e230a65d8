"""A loop inside another one's task: what is asked of the loop goes to the inner one, where anyio sees it too."""

import asyncio
import sys
import types
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
import trio

from toolrunner import Runner, ToolCall, tool
from toolrunner.abort import AbortController
from toolrunner.loops import current_native_task, native_loop, poster
from toolrunner.records import CallDispatched
from toolrunner.results import Outcome


def in_asyncio_then_trio(fn: Callable[[], Awaitable[None]]) -> None:
    """`fn` under `trio.run`, which a task of asyncio called; and that one goes on unharmed."""

    async def outer() -> None:
        mine = asyncio.current_task()
        trio.run(fn)
        assert mine is not None
        assert mine.cancelling() == 0
        assert native_loop() is asyncio.get_running_loop()
        assert current_native_task() is mine

    asyncio.run(outer())


def test_the_loop_and_the_task_are_those_of_the_inner_run() -> None:
    found = list[Any]()

    async def look() -> None:
        found.extend([native_loop(), current_native_task()])
        found.extend([trio.lowlevel.current_trio_token(), trio.lowlevel.current_task()])

    in_asyncio_then_trio(look)
    assert found[:2] == found[2:]


def test_an_abort_is_told_to_the_inner_run() -> None:
    reasons = list[str]()

    async def wait() -> None:
        controller = AbortController()
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.to_thread.run_sync, lambda: controller.abort("told"))
                reasons.append((await controller.signal.wait()).text)

    in_asyncio_then_trio(wait)
    assert reasons == ["told"]


def test_a_runner_works_there() -> None:
    outcomes = list[Outcome]()

    @tool
    async def stays() -> None:
        """Stay until it is stopped."""
        await anyio.sleep(3600)

    async def run() -> None:
        controller = AbortController()
        with anyio.fail_after(60):
            async with Runner([stays]) as runner, anyio.create_task_group() as group:

                async def stop() -> None:
                    controller.abort()

                runner.on_record(lambda record: group.start_soon(stop) if isinstance(record, CallDispatched) else None)
                outcomes.append((await runner.run(ToolCall("stays", {}), signal=controller.signal)).outcome)

    in_asyncio_then_trio(run)
    assert outcomes == [Outcome.ABORTED]


@pytest.mark.parametrize("half", [types.ModuleType("trio.lowlevel"), None])
def test_an_import_of_trio_that_another_thread_is_in_the_middle_of_disturbs_nobody(
    half: types.ModuleType | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look() -> None:
        monkeypatch.setitem(sys.modules, "trio", types.ModuleType("trio"))
        if half is None:
            monkeypatch.delitem(sys.modules, "trio.lowlevel")
        else:
            monkeypatch.setitem(sys.modules, "trio.lowlevel", half)
        loop = asyncio.get_running_loop()
        assert native_loop() is loop
        came = asyncio.Event()
        loop.call_soon(lambda: poster()(came.set))  # in a callback there is no task that would tell
        async with asyncio.timeout(60):
            await came.wait()

    asyncio.run(look())


@pytest.mark.parametrize("patched, expected", [(False, 0), (True, 1)])
def test_a_loop_that_may_sleep_inside_a_step_is_woken(patched: bool, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """nest_asyncio runs the loop anew in a step of one of its tasks, which stays the current one while that run sleeps."""
    woken = list[object]()

    async def post() -> None:
        loop = asyncio.get_running_loop()
        if patched:
            monkeypatch.setattr(loop, "_nest_patched", True, raising=False)
        wake = loop.call_soon_threadsafe
        monkeypatch.setattr(loop, "call_soon_threadsafe", lambda fn, **more: wake(woken.append(fn) or fn, **more))  # type: ignore[func-returns-value]
        came = asyncio.Event()
        poster()(came.set)
        async with asyncio.timeout(60):
            await came.wait()
        monkeypatch.undo()

    asyncio.run(post())
    assert len(woken) == expected
