"""A request to stop: any thread may make it, the first cause wins, and everybody who reads it is told the same."""

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
import trio
from stillness import all_blocked
from trio.testing import MockClock

from toolrunner.abort import AbortController, AbortError, AbortSignal
from toolrunner.errors import ConfigError
from toolrunner.facts import AbortMode, AbortReason

pytestmark = pytest.mark.anyio


def subscriptions(controller: AbortController) -> int:
    return len(controller._latch._subscriptions)


async def settled() -> None:
    """Until callbacks that are on their way have come: those of another loop pass through this loop's own queue."""
    with anyio.fail_after(60):
        for _ in range(3):
            await all_blocked()


# The latch.


def test_nothing_is_aborted_by_itself() -> None:
    signal_ = AbortController().signal
    assert not signal_.aborted
    assert signal_.reason is None
    assert not signal_.observed
    signal_.raise_if_aborted()


def test_an_abort_has_a_source_and_a_text() -> None:
    controller = AbortController(source="cost")
    assert controller.abort("too much")
    assert controller.signal.aborted
    assert controller.signal.reason == AbortReason("cost", "too much")
    with pytest.raises(AbortError) as caught:
        controller.signal.raise_if_aborted()
    assert caught.value.reason == AbortReason("cost", "too much")


@pytest.mark.case("E18")
def test_the_first_cause_wins() -> None:
    controller = AbortController()
    assert controller.abort("first")
    assert not controller.abort("second")
    assert not controller.abort("third", mode="drain")
    assert controller.signal.reason == AbortReason("caller", "first")


@pytest.mark.case("E29")
@pytest.mark.parametrize("mode", AbortMode)
@pytest.mark.parametrize("round_", range(5))
def test_of_fifty_threads_exactly_one_is_first(mode: AbortMode, round_: int) -> None:
    controller = AbortController()
    barrier = threading.Barrier(50)
    won: list[str] = []

    def abort(name: str) -> None:
        barrier.wait(60)
        if controller.abort(name, mode=mode):
            won.append(name)

    threads = [threading.Thread(target=abort, args=(str(n),)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert controller.signal.reason is not None
    assert won == [controller.signal.reason.text]


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


def test_an_abort_in_the_middle_of_another_does_not_win_too() -> None:
    controller = AbortController()
    won: list[bool] = []
    controller._latch._causes = _SlowStore(lambda: won.append(controller.abort("intruder")))
    won.append(controller.abort("first"))
    assert won == [False, True]
    assert controller.signal.reason == AbortReason("caller", "first")


def test_an_immediate_abort_upgrades_a_drain_once_and_keeps_its_reason() -> None:
    controller = AbortController()
    immediate = controller.signal.immediate()
    assert controller.abort("finish up", mode="drain")
    assert controller.signal.aborted
    assert not immediate.aborted
    assert immediate.reason is None
    assert controller.abort("now")
    assert not controller.abort("now, really")
    assert immediate.aborted
    assert immediate.reason == controller.signal.reason == AbortReason("caller", "finish up")


@pytest.mark.parametrize("mode", ["hard", "", None, "IMMEDIATE"])
def test_an_unknown_mode_is_refused_and_aborts_nothing(mode: Any) -> None:
    controller = AbortController()
    with pytest.raises(ConfigError, match="immediate or drain"):
        controller.abort(mode=mode)
    assert not controller.signal.aborted


# Merged and derived signals.


def test_a_merged_signal_is_aborted_by_any_of_its_parts() -> None:
    one, two = AbortController(source="host"), AbortController(source="parent")
    merged = AbortSignal.any(one.signal, two.signal)
    assert not merged.aborted
    two.abort("b")
    assert merged.aborted
    assert merged.reason == AbortReason("parent", "b")
    assert not one.signal.aborted


def test_the_earliest_abort_of_all_parts_gives_the_reason() -> None:
    one, two = AbortController(), AbortController()
    merged, mirrored = AbortSignal.any(one.signal, two.signal), AbortSignal.any(two.signal, one.signal)
    two.abort("earlier")
    one.abort("later")
    assert merged.reason == mirrored.reason == AbortReason("caller", "earlier")


def test_a_reason_once_seen_never_changes() -> None:
    one, two = AbortController(), AbortController()
    merged = AbortSignal.any(one.signal.immediate(), two.signal)
    one.abort("drain first", mode="drain")
    two.abort("immediate")
    assert merged.reason == AbortReason("caller", "immediate")
    one.abort("upgrade")
    assert merged.reason == AbortReason("caller", "immediate")
    # Who looks only now is told the same: the upgrade came later, however early the drain was.
    assert AbortSignal.any(one.signal.immediate(), two.signal).reason == AbortReason("caller", "immediate")
    assert AbortSignal.any(one.signal, two.signal).reason == AbortReason("caller", "drain first")


def test_an_empty_merge_is_never_aborted() -> None:
    assert not AbortSignal.any().aborted
    assert AbortSignal.any().reason is None


def test_a_named_signal_is_told_under_its_name_and_keeps_the_order() -> None:
    wrapper, caller = AbortController(), AbortController()
    merged = AbortSignal.any(caller.signal, wrapper.signal.named("wrapper:budget"))
    wrapper.abort("spent", mode="drain")
    caller.abort("user")
    assert merged.reason == AbortReason("wrapper:budget", "spent")
    assert wrapper.signal.reason == AbortReason("caller", "spent")
    assert merged.immediate().reason == AbortReason("caller", "user")
    assert not wrapper.signal.immediate().named("wrapper:budget").aborted, "a name lets no drain through"


@pytest.mark.case("T12")
def test_aborting_a_merged_signals_part_leaves_the_other_controllers_alone() -> None:
    caller, wrapper = AbortController(), AbortController()
    merged = AbortSignal.any(caller.signal, wrapper.signal)
    caller.abort()
    assert merged.aborted
    assert not wrapper.signal.aborted


# Who has seen it.


def test_a_signal_is_observed_only_by_who_learns_of_an_abort() -> None:
    controller = AbortController()
    shown = AbortSignal.any(controller.signal)
    assert (shown.aborted, shown.reason) == (False, None)
    controller.abort()
    assert not shown.observed
    assert not controller.signal.observed
    assert controller.signal.aborted
    assert controller.signal.observed
    assert not shown.observed, "what was read was another signal"


def was_raised(signal_: AbortSignal) -> bool:
    with pytest.raises(AbortError):
        signal_.raise_if_aborted()
    return True


@pytest.mark.parametrize(
    "look",
    [
        lambda one: one.aborted,
        lambda one: one.reason,
        lambda one: one.immediate().aborted,
        lambda one: one.named("x").reason,
        lambda one: AbortSignal.any(one).aborted,
        was_raised,
    ],
)
def test_every_way_of_looking_counts_also_through_a_derived_signal(look: Callable[[AbortSignal], object]) -> None:
    controller = AbortController()
    shown = AbortSignal.any(controller.signal)
    look_first = AbortSignal.any(shown)
    controller.abort()
    assert look(shown)
    assert shown.observed
    assert controller.signal.observed, "what it was derived from"
    assert not look_first.observed, "what was derived from it"


def test_a_drain_is_not_observed_through_the_view_without_drains() -> None:
    controller = AbortController()
    controller.abort(mode="drain")
    view = controller.signal.immediate()
    assert (view.aborted, view.reason, view.observed) == (False, None, False)


async def test_waiting_and_callbacks_count_as_seen_when_they_are_told() -> None:
    controller = AbortController()
    for how in ("wait", "callback", "scope"):
        shown = AbortSignal.any(controller.signal)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                told = anyio.Event()
                if how == "wait":
                    group.start_soon(shown.wait)
                elif how == "callback":
                    shown.on_abort(told.set)
                else:
                    group.start_soon(_sleep_in_scope, shown)
                await all_blocked()
                assert not shown.observed or controller.signal.aborted
                controller.abort()
                await settled()
                assert shown.observed, how


async def _sleep_in_scope(signal_: AbortSignal) -> None:
    async with signal_.scope():
        await anyio.sleep_forever()


# Callbacks.


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


# From odd places.


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


# Waiting, scopes, time.


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
