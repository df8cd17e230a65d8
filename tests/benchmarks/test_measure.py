"""Turns, percentiles and bounds: what the report says is what was measured."""

import math
from collections.abc import Awaitable, Callable

import pytest

from benchmarks.measure import Contender, Series, Trial, interleave
from benchmarks.rows import Bound, row


def series(*values: float, name: str = "x", left: int = 0) -> Series:
    return Series(name, [Trial(value) for value in values[:-1]] + [Trial(values[-1], left)])


def recording(name: str, order: list[str]) -> Callable[[], Awaitable[Trial]]:
    async def trial() -> Trial:
        order.append(name)
        return Trial(float(len(order)))

    return trial


@pytest.mark.anyio
async def test_contenders_take_turns_and_nobody_is_always_first() -> None:
    order: list[str] = []
    contenders = [Contender(name, recording(name, order)) for name in ("a", "b")]
    made = await interleave(contenders, 3)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert [(one.name, len(one.trials)) for one in made] == [("a", 3), ("b", 3)]


@pytest.mark.anyio
async def test_warm_up_rounds_are_not_counted() -> None:
    order: list[str] = []
    ticks: list[int] = []
    (made,) = await interleave([Contender("a", recording("a", order))], 8, lambda: ticks.append(1))
    assert len(order) == 10
    assert made.values == [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    assert len(ticks) == 8


def test_percentiles_are_values_that_were_measured() -> None:
    hundred = series(*(float(value) for value in range(1, 101)))
    assert [hundred.percentile(percent) for percent in (50, 95, 99, 100)] == [50.0, 95.0, 99.0, 100.0]
    assert series(3.0, 1.0).percentile(99) == 3.0
    assert series(7.0).percentile(50) == 7.0


@pytest.mark.parametrize(
    "bound, own, baseline, holds",
    [
        (Bound(p50=2.0), series(1.0, 2.0, 9.0), None, True),
        (Bound(p50=2.0), series(1.0, 2.1, 9.0), None, False),
        (Bound(ratio=3.0), series(3.0), series(1.0), True),
        (Bound(ratio=3.0), series(3.1), series(1.0), False),
        (Bound(ratio=3.0), series(3.1), None, None),
        (Bound(over=1.5), series(2.5), series(1.0), True),
        (Bound(over=1.5), series(2.6), series(1.0), False),
        (Bound(ratio_at_least=0.8), series(0.8), series(1.0), True),
        (Bound(ratio_at_least=0.8), series(0.7), series(1.0), False),
        (Bound(left=0), series(1.0, left=1), None, False),
        (Bound(), Series("x", [Trial(1.0, lied=True)]), None, False),
    ],
)
def test_a_bound_holds_or_does_not(bound: Bound, own: Series, baseline: Series | None, holds: bool | None) -> None:
    assert bound.holds(own, baseline) is holds


def test_a_row_tells_survivors_of_both_sides_next_to_their_times() -> None:
    made = row("x", series(2.0, left=1), series(4.0, name="other", left=3), bound=Bound(p50=5.0, left=0))
    assert (made.p50, made.baseline, made.baseline_p50, made.ratio) == (2.0, "other", 4.0, 0.5)
    assert (made.left, made.baseline_left, made.within, made.bound) == (1, 3, False, "p50 <= 5 ms, left 0")


def test_a_baseline_of_zero_gives_no_ratio() -> None:
    made = row("x", series(2.0), series(0.0))
    assert made.ratio is None
    assert not math.isnan(made.p50)
