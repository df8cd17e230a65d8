"""Waiting for an abort: wait, scopes, time."""

import signal
import threading
from typing import Any

import anyio
import pytest
import trio
from stillness import all_blocked
from trio.testing import MockClock

from toolrunner.abort import AbortController, AbortSignal
from toolrunner.errors import ConfigError
from toolrunner.facts import AbortReason

pytestmark = pytest.mark.anyio


def subscriptions(controller: AbortController) -> int:
    return len(controller._latch._subscriptions)


async def settled() -> None:
    """Until callbacks that are on their way have come: those of another loop pass through this loop's own queue."""
    with anyio.fail_after(60):
        for _ in range(3):
            await all_blocked()


@pytest.mark.uvloop
async def test_wait_returns_the_reason_also_when_it_is_there_already() -> None:
    controller = AbortController()
    reasons = list[AbortReason]()

    async def wait() -> None:
        reasons.append(await AbortSignal.any(controller.signal).wait())

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            group.start_soon(wait)
            await all_blocked()
            assert reasons == []
            controller.abort("now")
        await wait()
    assert reasons == [AbortReason("caller", "now")] * 3
    assert subscriptions(controller) == 0


async def test_a_wait_that_is_cancelled_keeps_nothing() -> None:
    controller = AbortController()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(controller.signal.wait)
            await all_blocked()
            assert subscriptions(controller) == 1
            group.cancel_scope.cancel()
    assert subscriptions(controller) == 0
    assert not controller.signal.observed


@pytest.mark.uvloop
async def test_a_scope_ends_its_block_quietly_when_aborted() -> None:
    controller = AbortController()
    reached = list[str]()

    async def work() -> None:
        async with controller.signal.scope() as scope:
            reached.append("in")
            await anyio.sleep_forever()
        reached.append("after")
        assert scope.cancelled_caught
        await anyio.lowlevel.checkpoint()
        reached.append("not cancelled any more")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            await all_blocked()
            threading.Thread(target=controller.abort).start()
    assert reached == ["in", "after", "not cancelled any more"]
    assert subscriptions(controller) == 0


async def test_a_scope_of_an_aborted_signal_is_left_at_its_first_wait() -> None:
    controller = AbortController()
    controller.abort()
    reached = list[str]()
    with anyio.fail_after(60):
        async with controller.signal.scope():
            reached.append("entered")
            await anyio.lowlevel.checkpoint()
            reached.append("beyond")
    assert reached == ["entered"]


async def test_a_scope_without_an_abort_changes_nothing_and_lets_errors_out() -> None:
    controller = AbortController()
    with anyio.fail_after(60):
        async with controller.signal.scope() as scope:
            await anyio.lowlevel.checkpoint()
        assert not scope.cancel_called
        with pytest.raises(ZeroDivisionError):
            async with controller.signal.scope():
                raise ZeroDivisionError
    assert subscriptions(controller) == 0


@pytest.mark.uvloop
async def test_a_timeout_aborts_by_itself() -> None:
    timeout = AbortSignal.timeout(0.001)
    assert not timeout.aborted
    with anyio.fail_after(60):
        assert await timeout.wait() == AbortReason("timeout", "0.001 s passed")


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan")])
async def test_a_timeout_that_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(ConfigError):
        AbortSignal.timeout(seconds)


class TestVirtualTime:
    @pytest.fixture
    def anyio_backend(self) -> tuple[str, dict[str, Any]]:
        return "trio", {"clock": MockClock(autojump_threshold=0)}

    async def test_a_timeout_counts_on_the_loops_clock(self) -> None:
        started = trio.current_time()
        hour = AbortSignal.timeout(3600)
        merged = AbortSignal.any(hour, AbortController().signal)
        await trio.sleep(3599.9)
        assert not merged.aborted
        assert await merged.wait() == AbortReason("timeout", "3600 s passed")
        assert trio.current_time() - started == pytest.approx(3600)

    async def test_the_earlier_of_two_timeouts_gives_the_reason(self) -> None:
        merged = AbortSignal.any(AbortSignal.timeout(20), AbortSignal.timeout(10))
        await trio.sleep(30)
        assert merged.reason == AbortReason("timeout", "10 s passed")


async def test_a_signal_made_of_the_same_one_twice_is_told_once_and_forgotten() -> None:
    controller = AbortController()
    came = list[str]()
    twice = AbortSignal.any(controller.signal.immediate(), controller.signal)
    twice.on_abort(lambda: came.append("both"))
    controller.abort(mode="drain")  # only one of the two parts hears of it
    await settled()
    assert came == ["both"]
    controller.abort()
    await settled()
    assert came == ["both"]
    assert subscriptions(controller) == 0


@pytest.mark.uvloop
async def test_an_abort_by_a_signal_handler_wakes_a_loop_that_sleeps() -> None:
    """Inside a step of a task the loop is not woken, as it looks before it sleeps; here it sleeps already."""
    controller = AbortController()
    before = signal.signal(signal.SIGALRM, lambda *_: controller.abort("alarm"))
    try:
        with anyio.fail_after(60) as limit:
            told = list[float]()
            controller.signal.on_abort(lambda: told.append(anyio.current_time()))
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            await controller.signal.wait()
        assert told
        assert limit.deadline - told[0] > 30, "it slept on until its own timer woke it"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
