"""Tasks that a runner owns: out of reach of their spawner's scopes and cancels, told to stop once, waited for whatever comes."""

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest
import sniffio
from stillness import all_blocked
from trio.testing import MockClock

from toolrunner.errors import ConfigError
from toolrunner.loops import call_later, current_native_task, native_loop, poster, spawn_detached
from toolrunner.tasks import Happening, OwnedTask, TaskRoot, wait_in_own_task, wait_through

pytestmark = pytest.mark.anyio

Var: contextvars.ContextVar[str] = contextvars.ContextVar("Var", default="unset")


def on_asyncio() -> bool:
    return sniffio.current_async_library() == "asyncio"


def cancelled() -> type[BaseException]:
    return anyio.get_cancelled_exc_class()


# What the loop offers.


def test_outside_a_loop_there_is_none() -> None:
    for ask in (native_loop, poster, lambda: call_later(1, lambda: None)):
        with pytest.raises(ConfigError, match="a running asyncio or trio loop"):
            ask()


@pytest.mark.uvloop
async def test_a_posted_callback_runs_on_the_loop_and_knows_it() -> None:
    post, done = poster(), anyio.Event()
    found = list[Any]()

    def look() -> None:
        found.append(native_loop())
        done.set()

    await anyio.to_thread.run_sync(post, look)
    with anyio.fail_after(60):
        await done.wait()
    assert found == [native_loop()]


@pytest.mark.uvloop
async def test_a_timer_runs_once_and_can_be_taken_back() -> None:
    done, came = anyio.Event(), list[str]()
    call_later(0.001, lambda: came.append("late") or done.set())  # type: ignore[func-returns-value]
    call_later(0, lambda: came.append("taken back"))()
    with anyio.fail_after(60):
        await done.wait()
    assert came == ["late"]


class TestVirtualTime:
    @pytest.fixture
    def anyio_backend(self) -> tuple[str, dict[str, Any]]:
        return "trio", {"clock": MockClock(autojump_threshold=0)}

    async def test_a_timer_counts_on_the_loops_clock(self) -> None:
        began, came = anyio.current_time(), list[float]()
        call_later(60, lambda: came.append(anyio.current_time() - began))
        await anyio.sleep(59)
        assert came == []
        await anyio.sleep(2)
        assert came == [60]

    @pytest.mark.parametrize("round_", range(5))
    async def test_of_two_timers_due_at_once_the_first_can_take_the_other_back(self, round_: int) -> None:
        came = list[str]()
        takes = dict[str, Callable[[], None]]()

        def run(name: str, other: str) -> None:
            came.append(name)
            takes[other]()

        takes["a"] = call_later(1, lambda: run("a", "b"))
        takes["b"] = call_later(1, lambda: run("b", "a"))
        await anyio.sleep(2)
        assert came in (["a"], ["b"])


@pytest.mark.uvloop
async def test_a_detached_task_survives_the_cancel_of_the_scope_it_was_started_in() -> None:
    go, over = anyio.Event(), anyio.Event()

    async def work() -> None:
        await go.wait()
        over.set()

    with anyio.CancelScope() as scope:
        spawn_detached(work, "work", contextvars.copy_context())
        scope.cancel()
        await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    go.set()
    with anyio.fail_after(60):
        await over.wait()


@pytest.mark.case("E12")
async def test_a_detached_task_survives_a_native_cancel_of_its_spawner() -> None:
    if not on_asyncio():
        pytest.skip("native cancels are asyncio's")
    started, go, over = anyio.Event(), anyio.Event(), anyio.Event()

    async def work() -> None:
        started.set()
        await go.wait()
        over.set()

    async def spawner() -> None:
        spawn_detached(work, "work", contextvars.copy_context())
        await asyncio.sleep(3600)

    task = asyncio.create_task(spawner())
    with anyio.fail_after(60):
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()
        await over.wait()


@pytest.mark.uvloop
async def test_a_detached_task_runs_in_the_context_it_is_given() -> None:
    found, over = list[str](), anyio.Event()
    context = contextvars.copy_context()
    context.run(Var.set, "given")

    async def work() -> None:
        found.append(Var.get())
        over.set()

    spawn_detached(work, "work", context)
    with anyio.fail_after(60):
        await over.wait()
    assert found == ["given"]
    assert Var.get() == "unset"


async def test_a_detached_task_is_not_lost_to_the_garbage_collector() -> None:
    if not on_asyncio():
        pytest.skip("asyncio alone holds tasks weakly")
    from_loops = __import__("toolrunner.loops", fromlist=["_detached"])._detached
    over = anyio.Event()

    async def work() -> None:
        await over.wait()

    spawn_detached(work, "work", contextvars.copy_context())
    assert [task.get_name() for task in from_loops] == ["work"]
    over.set()
    await all_blocked()
    assert not from_loops


async def test_the_native_task_is_the_one_that_runs() -> None:
    mine = current_native_task()
    assert mine is (asyncio.current_task() if on_asyncio() else mine)
    root, found = TaskRoot(), list[Any]()

    async def work() -> None:
        found.append(current_native_task())

    root.spawn(work, "other")
    await root.wait_empty()
    assert found[0] is not mine


# Owned tasks.


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


# Waiting whatever comes.


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
