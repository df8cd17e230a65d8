"""Tasks that the runner owns: one cancel each, nothing of their spawner's."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest
import sniffio
from stillness import all_blocked

from toolrunner.loops import current_native_task
from toolrunner.tasks import OwnedTask, TaskRoot

pytestmark = pytest.mark.anyio


def on_asyncio() -> bool:
    return sniffio.current_async_library() == "asyncio"


def cancelled() -> type[BaseException]:
    return anyio.get_cancelled_exc_class()


async def spawned(root: TaskRoot, fn: Callable[[], Any], name: str = "task") -> OwnedTask:
    task = root.spawn(fn, name)
    await all_blocked()
    return task


@pytest.mark.uvloop
async def test_the_root_knows_who_lives_and_waits_for_all_later_ones_too() -> None:
    root, go, go_on, order = TaskRoot(), anyio.Event(), anyio.Event(), list[str]()

    async def second() -> None:
        await go_on.wait()
        order.append("second")

    async def first() -> None:
        await go.wait()
        order.append("first")
        root.spawn(second, "second")

    await spawned(root, first, "first")
    assert root.live == ("first",)

    async def wait() -> None:
        await root.wait_empty()
        order.append("empty")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            go.set()
            await all_blocked()
            go_on.set()
    assert order == ["first", "second", "empty"]
    assert not root.live


async def test_an_error_in_an_owned_task_is_logged_and_ends_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    root = TaskRoot()

    async def fail() -> None:
        raise ZeroDivisionError("ours")

    with caplog.at_level(logging.ERROR, "toolrunner"), anyio.fail_after(60):
        root.spawn(fail, "broken")
        await root.wait_empty()
    assert [one.message for one in caplog.records if one.name == "toolrunner"] == ["task broken raised"]


@pytest.mark.uvloop
async def test_a_cancel_is_delivered_once_and_clean_up_may_await() -> None:
    """Native on asyncio, where a scope's cancel would come back at every await; on trio clean-up needs its shield."""
    root, seen = TaskRoot(), list[str]()

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        except cancelled():
            seen.append("cancelled")
            with anyio.CancelScope(shield=not on_asyncio()):
                await anyio.sleep(0.001)
                seen.append("cleaned up")
            raise

    task = await spawned(root, work)
    task.cancel()
    with anyio.fail_after(60):
        await task.done.wait()
        await root.wait_empty()
    assert seen == ["cancelled", "cleaned up"]


async def test_a_cancel_before_the_first_step_or_after_the_end_does_nothing() -> None:
    root, ran = TaskRoot(), list[str]()

    async def work() -> None:
        await anyio.lowlevel.checkpoint()
        ran.append("ran")

    task = root.spawn(work, "task")
    task.cancel()
    with anyio.fail_after(60):
        await task.done.wait()
    task.cancel()
    await anyio.lowlevel.checkpoint()
    assert ran == ["ran"]


@pytest.mark.case("E26")
async def test_a_task_that_the_loop_takes_before_its_first_step_is_run_all_the_same() -> None:
    if not on_asyncio():
        pytest.skip("trio enters every task")
    told, ran = list[str](), list[str]()
    root = TaskRoot(lambda: told.append("torn down"))

    async def work() -> None:
        ran.append("ran")

    root.spawn(work, "task")
    (native,) = (task for task in asyncio.all_tasks() if task.get_name() == "task")
    native.cancel()
    with anyio.fail_after(60):
        await root.wait_empty()
    assert (told, ran) == (["torn down"], ["ran"])


async def test_a_cancel_that_the_body_swallows_costs_no_time() -> None:
    root, go, seen = TaskRoot(), anyio.Event(), list[str]()

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        except cancelled():
            seen.append("cancelled")
        with anyio.CancelScope(shield=not on_asyncio()):
            await go.wait()

    task = await spawned(root, work)
    task.cancel()
    used = time.process_time()
    await anyio.sleep(0.3)
    assert time.process_time() - used < 0.15, "somebody delivers the cancel again and again"
    assert seen == ["cancelled"]
    go.set()
    with anyio.fail_after(60):
        await task.done.wait()


async def test_absorbing_a_cancel_gives_the_later_waits_back() -> None:
    if not on_asyncio():
        pytest.skip("trio has no count to restore")
    root, counts = TaskRoot(), list[int]()
    box = list[OwnedTask]()

    async def work() -> None:
        me = asyncio.current_task()
        assert me is not None
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            counts.append(me.cancelling())
        await box[0].absorb(delivered=True)
        counts.append(me.cancelling())
        # Both of these look at the count to tell their own cancel from a foreign one.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await asyncio.sleep(3600)
        with anyio.move_on_after(0.001) as scope:
            await anyio.sleep_forever()
        assert scope.cancelled_caught
        counts.append(me.cancelling())

    box.append(await spawned(root, work))
    box[0].cancel()
    with anyio.fail_after(60):
        await box[0].done.wait()
    assert counts == [1, 0, 0]


async def test_absorbing_on_trio_is_nothing() -> None:
    if on_asyncio():
        pytest.skip("the other loop's")
    root, go = TaskRoot(), anyio.Event()
    task = await spawned(root, go.wait)
    await task.absorb(delivered=True)
    await task.absorb(delivered=False)
    go.set()
    with anyio.fail_after(60):
        await task.done.wait()


async def test_a_cancel_that_came_with_the_last_step_is_absorbed_before_it_hits_a_later_wait() -> None:
    if not on_asyncio():
        pytest.skip("trio has no count to restore")
    root, seen = TaskRoot(), list[str]()
    box = list[OwnedTask]()

    async def work() -> None:
        await anyio.lowlevel.checkpoint()
        box[0].cancel()  # made while it runs: the next wait would raise it
        await box[0].absorb(delivered=False)
        await anyio.sleep(0.001)
        seen.append("waited")
        assert native_count() == 0

    box.append(root.spawn(work, "task"))
    with anyio.fail_after(60):
        await box[0].done.wait()
    assert seen == ["waited"]


def native_count() -> int:
    count: int = current_native_task().cancelling()
    return count


async def test_a_cancellation_of_ours_is_told_from_one_from_outside() -> None:
    root, seen = TaskRoot(), list[Any]()
    box = list[OwnedTask]()

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        except cancelled() as error:
            seen.append(
                (box[0].was_cancelled_from_outside(error, told=True), box[0].was_cancelled_from_outside(error, told=False))
            )
            raise

    box.append(await spawned(root, work))
    box[0].cancel()
    with anyio.fail_after(60):
        await box[0].done.wait()
    # told: the one cancel that was made was ours; not told: somebody else made it.
    assert seen == [(False, True)]
    assert not box[0].was_cancelled_from_outside(ValueError(), told=False)


async def test_a_second_cancel_that_is_not_ours_is_noticed() -> None:
    if not on_asyncio():
        pytest.skip("on trio nobody but the run itself reaches the task")
    root, seen = TaskRoot(), list[bool]()
    box = list[OwnedTask]()
    native = list[asyncio.Task[Any]]()

    async def work() -> None:
        native.append(current_native_task())
        for told in (True, True):
            try:
                await anyio.sleep_forever()
            except asyncio.CancelledError as error:
                seen.append(box[0].was_cancelled_from_outside(error, told=told))

    box.append(await spawned(root, work))
    box[0].cancel()
    await all_blocked()
    native[0].cancel()
    with anyio.fail_after(60):
        await box[0].done.wait()
    assert seen == [False, True]


async def test_a_cancelled_error_that_the_body_made_up_is_nobodys_cancel() -> None:
    if not on_asyncio():
        pytest.skip("trio lets nobody make one up")
    root, seen = TaskRoot(), list[bool]()
    box = list[OwnedTask]()

    async def work() -> None:
        await anyio.lowlevel.checkpoint()
        seen.append(box[0].was_cancelled_from_outside(asyncio.CancelledError(), told=False))

    box.append(root.spawn(work, "task"))
    with anyio.fail_after(60):
        await box[0].done.wait()
    assert seen == [False]


async def test_an_owned_task_is_under_no_scope_of_its_spawner() -> None:
    root, go, seen = TaskRoot(), anyio.Event(), list[str]()

    async def work() -> None:
        await go.wait()
        seen.append("done")

    with anyio.CancelScope() as scope:
        await spawned(root, work)
        scope.cancel()
        await anyio.lowlevel.checkpoint()
    go.set()
    with anyio.fail_after(60):
        await root.wait_empty()
    assert seen == ["done"]
