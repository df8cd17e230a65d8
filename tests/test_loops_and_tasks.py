"""Tasks that a runner owns: out of reach of their spawner's scopes and cancels, told to stop once, waited for whatever comes."""

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

import anyio
import pytest
import sniffio
from stillness import all_blocked
from trio.testing import MockClock

from toolrunner.errors import ConfigError
from toolrunner.loops import call_later, current_native_task, native_loop, poster, spawn_detached
from toolrunner.tasks import TaskRoot

pytestmark = pytest.mark.anyio

Var: contextvars.ContextVar[str] = contextvars.ContextVar("Var", default="unset")


def on_asyncio() -> bool:
    return sniffio.current_async_library() == "asyncio"


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


# Waiting whatever comes.
