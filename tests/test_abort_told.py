"""How an abort is told: callbacks; from threads, signal handlers and finalizers."""

import gc
import logging
import os
import signal
import threading
import weakref
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from stillness import all_blocked

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


class _SlowStore(dict[str, Any]):
    """A latch's causes, with another thread's abort let in right after the first one was stored."""

    def __init__(self, intrude: Callable[[], object]) -> None:
        self._intrude = intrude
        self._intruded = False

    def setdefault(self, key: str, default: Any = None) -> Any:
        kept = super().setdefault(key, default)
        if not self._intruded:
            self._intruded = True
            self._intrude()
        return kept


@pytest.mark.uvloop
async def test_a_callback_comes_once_soon_on_its_own_loop_and_never_inside_abort() -> None:
    controller = AbortController()
    came = list[int]()
    controller.signal.on_abort(lambda: came.append(threading.get_ident()))
    controller.abort()
    assert came == []
    await settled()
    controller.abort("again")
    await settled()
    assert came == [threading.get_ident()]


@pytest.mark.uvloop
@pytest.mark.case("E29")
async def test_an_abort_from_another_thread_is_told_on_the_subscribers_loop() -> None:
    controller = AbortController()
    came = list[int]()
    told = anyio.Event()

    def tell() -> None:
        came.append(threading.get_ident())
        told.set()

    controller.signal.on_abort(tell)
    thread = threading.Thread(target=controller.abort)
    thread.start()
    with anyio.fail_after(60):
        await told.wait()
    thread.join(60)
    assert came == [threading.get_ident()]


async def test_a_signal_that_is_aborted_already_calls_soon_as_well() -> None:
    controller = AbortController()
    controller.abort()
    came = list[str]()
    controller.signal.on_abort(lambda: came.append("told"))
    assert came == []
    await settled()
    assert came == ["told"]
    assert subscriptions(controller) == 0


async def test_a_merged_signal_calls_once_however_many_parts_are_aborted() -> None:
    one, two = AbortController(), AbortController()
    came = list[str]()
    AbortSignal.any(one.signal, two.signal, one.signal).on_abort(lambda: came.append("told"))
    one.abort()
    two.abort()
    await settled()
    assert came == ["told"]


async def test_a_callback_without_drains_waits_for_the_upgrade() -> None:
    controller = AbortController()
    came = list[str]()
    controller.signal.on_abort(lambda: came.append("any"))
    controller.signal.immediate().on_abort(lambda: came.append("immediate"))
    controller.abort(mode="drain")
    await settled()
    assert came == ["any"]
    controller.abort()
    await settled()
    assert came == ["any", "immediate"]


async def test_what_is_taken_back_is_not_called_even_when_it_is_on_its_way() -> None:
    controller = AbortController()
    came = list[str]()
    early, late = (controller.signal.on_abort(lambda: came.append("told")) for _ in range(2))
    early()
    controller.abort()
    late()
    late()
    await settled()
    assert came == []
    assert not controller.signal.observed


async def test_what_a_callback_raises_is_logged_and_stops_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    controller = AbortController()
    came = list[str]()

    def fail() -> None:
        raise ZeroDivisionError("a callback's own")

    controller.signal.on_abort(fail)
    controller.signal.on_abort(lambda: came.append("told"))
    with caplog.at_level(logging.ERROR, "toolrunner"):
        controller.abort()
        await settled()
    assert came == ["told"]
    assert [one.message for one in caplog.records if one.name == "toolrunner"] == ["an on_abort callback raised"]


async def test_a_callback_may_abort_and_subscribe() -> None:
    first, second = AbortController(), AbortController()
    came = list[str]()

    def go_on() -> None:
        second.abort("passed on")
        second.signal.on_abort(lambda: came.append("inner"))

    first.signal.on_abort(go_on)
    first.abort()
    await settled()
    assert came == ["inner"]
    assert second.signal.reason == AbortReason("caller", "passed on")


def test_callbacks_need_a_loop() -> None:
    with pytest.raises(ConfigError, match="a running asyncio or trio loop"):
        AbortController().signal.on_abort(lambda: None)


async def test_nothing_is_kept_after_taking_back() -> None:
    shutdown, caller = AbortController(), AbortController()
    for _ in range(100):
        AbortSignal.any(shutdown.signal, caller.signal).on_abort(lambda: None)()
        with anyio.move_on_after(0):
            await AbortSignal.any(shutdown.signal, caller.signal).wait()
        async with AbortSignal.any(shutdown.signal, caller.signal).scope():
            pass
    assert (subscriptions(shutdown), subscriptions(caller)) == (0, 0)


class _Big:
    def told(self) -> None: ...


async def test_nothing_is_kept_after_telling_not_even_by_a_part_that_lives_on() -> None:
    shutdown, caller = AbortController(), AbortController()
    big = _Big()
    gone = weakref.ref(big)
    AbortSignal.any(shutdown.signal, caller.signal).on_abort(big.told)
    del big
    caller.abort()
    await settled()
    assert subscriptions(shutdown) == 0
    gc.collect()
    assert gone() is None


@pytest.mark.case("E29")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_abort_after_the_loop_is_gone_raises_nothing(backend: str) -> None:
    controller = AbortController()
    came = list[str]()

    async def subscribe() -> None:
        controller.signal.on_abort(lambda: came.append("told"))

    anyio.run(subscribe, backend=backend)
    assert controller.abort("late")
    assert controller.signal.reason == AbortReason("caller", "late")
    assert came == []


@pytest.mark.uvloop
@pytest.mark.case("E29")
async def test_an_abort_from_a_signal_handler_is_told() -> None:
    controller = AbortController()
    before = signal.signal(signal.SIGUSR1, lambda *_: controller.abort("signal"))
    try:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(controller.signal.wait)
                await all_blocked()
                os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert controller.signal.reason == AbortReason("caller", "signal")


@pytest.mark.case("E29")
async def test_a_signal_handler_in_the_middle_of_an_abort_blocks_nothing() -> None:
    controller = AbortController()
    came = list[str]()
    controller.signal.on_abort(lambda: came.append("told"))
    controller._latch._causes = _SlowStore(lambda: os.kill(os.getpid(), signal.SIGUSR1))
    before = signal.signal(signal.SIGUSR1, lambda *_: controller.abort("from the handler"))
    try:
        assert controller.abort("interrupted")
    finally:
        signal.signal(signal.SIGUSR1, before)
    await settled()
    assert controller.signal.reason == AbortReason("caller", "interrupted")
    assert came == ["told"]


class _AbortsWhenCollected:
    def __init__(self, controller: AbortController) -> None:
        self._controller = controller
        self.me = self

    def __del__(self) -> None:
        self._controller.abort("collected")


@pytest.mark.uvloop
@pytest.mark.case("E29")
async def test_an_abort_from_a_finalizer_is_told() -> None:
    controller = AbortController()
    _AbortsWhenCollected(controller)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(controller.signal.wait)
            await all_blocked()
            gc.collect()
    assert controller.signal.reason == AbortReason("caller", "collected")


@pytest.mark.uvloop
@pytest.mark.case("E29")
async def test_fifty_threads_while_callbacks_come_and_go() -> None:
    controller = AbortController()
    came = list[int]()
    for n in range(50):
        controller.signal.on_abort(lambda n=n: came.append(n))  # type: ignore[misc]
    threads = [threading.Thread(target=controller.abort, args=(str(n),)) for n in range(50)]
    for thread in threads:
        thread.start()
    for n in range(50, 100):
        controller.signal.on_abort(lambda n=n: came.append(n))  # type: ignore[misc]
    for thread in threads:
        await anyio.to_thread.run_sync(thread.join, 5)
    await settled()
    assert sorted(came) == list(range(100))
    assert subscriptions(controller) == 0
