"""A request to stop: any thread may make it, the first cause wins, and everybody who reads it is told the same."""

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from stillness import all_blocked

from toolrunner.abort import AbortController, AbortError, AbortSignal
from toolrunner.errors import ConfigError
from toolrunner.facts import AbortMode, AbortReason

pytestmark = pytest.mark.anyio


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


# From odd places.


# Waiting, scopes, time.
