"""Waits that go through whatever comes."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest
import sniffio
from stillness import all_blocked

from toolrunner.loops import call_later
from toolrunner.tasks import Happening, wait_in_own_task, wait_through

pytestmark = pytest.mark.anyio


def on_asyncio() -> bool:
    return sniffio.current_async_library() == "asyncio"


async def test_a_wait_through_ends_with_its_event() -> None:
    event = anyio.Event()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(wait_through, event)
            await all_blocked()
            event.set()
        await wait_through(event)


@pytest.mark.uvloop
async def test_a_wait_through_holds_against_a_scope_and_burns_no_time() -> None:
    event, told, order = anyio.Event(), list[str](), list[str]()

    async def wait() -> None:
        with anyio.CancelScope() as scope:
            call_later(0.3, event.set)
            scope.cancel()
            await wait_through(event, lambda: told.append("told"))
            order.append("waited")
            await anyio.lowlevel.checkpoint()
            order.append("not reached")

    used = time.process_time()
    with anyio.fail_after(60):
        await wait()
    assert time.process_time() - used < 0.15, "the cancel is delivered again and again"
    assert order == ["waited"]
    assert told == []


@pytest.mark.case("E12")
@pytest.mark.parametrize("wait", [wait_through, wait_in_own_task])
@pytest.mark.parametrize("cancels", [1, 3])
async def test_a_wait_through_holds_against_native_cancels_and_tells_once(cancels: int, wait: Callable[..., Any]) -> None:
    if not on_asyncio():
        pytest.skip("native cancels are asyncio's")
    event, told = anyio.Event(), list[str]()
    task = asyncio.create_task(wait(event, lambda: told.append("told")))
    await all_blocked()
    for _ in range(cancels):
        task.cancel()
        await all_blocked()
        assert not task.done()
    used = time.process_time()
    await asyncio.sleep(0.3)
    assert time.process_time() - used < 0.15
    event.set()
    with anyio.fail_after(60):
        await task
    assert told == ["told"]


async def test_a_wait_through_holds_against_wait_for() -> None:
    if not on_asyncio():
        pytest.skip("wait_for is asyncio's")
    event, over = anyio.Event(), list[str]()

    async def wait() -> None:
        await wait_through(event)
        over.append("waited")

    waiter = asyncio.create_task(asyncio.wait_for(wait(), 0.01))
    await asyncio.sleep(0.05)
    assert not waiter.done()
    event.set()
    with anyio.fail_after(60):
        await asyncio.gather(waiter, return_exceptions=True)
    assert over == ["waited"]


async def test_a_wait_in_the_runners_own_task_outlasts_the_cancel_of_all_there_is() -> None:
    """What a loop's tear-down does on trio: every wait of the task is cancelled, for good."""
    event, order = Happening(), list[str]()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:

            async def own_task() -> None:
                await wait_in_own_task(event, lambda: order.append("told"))
                order.append("waited")

            group.start_soon(own_task)
            await all_blocked()
            group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await all_blocked()
                used = time.process_time()
                await anyio.sleep(0.3)
                assert time.process_time() - used < 0.15, "the cancel is delivered again and again"
                assert order == ["told"]
                event.set()
    assert order == ["told", "waited"]


async def test_a_happening_wakes_all_who_wait_and_lets_through_who_comes_later() -> None:
    happening, woken = Happening(), list[int]()

    async def wait(number: int) -> None:
        await happening.wait()
        woken.append(number)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(wait, number)
            await all_blocked()
            assert not happening.is_set()
            assert woken == []
            happening.set()
            happening.set()
        assert sorted(woken) == [0, 1, 2]
        await happening.wait()
    assert happening.is_set()


@pytest.mark.parametrize("happened", [True, False])
async def test_waiting_for_a_happening_is_a_place_to_be_cancelled_at(happened: bool) -> None:
    happening, passed = Happening(), list[str]()
    if happened:
        happening.set()
    with anyio.move_on_after(5) as scope:
        scope.cancel()
        await happening.wait()
        passed.append("not cancelled")
    assert passed == []
