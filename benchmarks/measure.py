"""Interleaved trials and their percentiles. No state; a `Series` is changed by `interleave` only, while it is being measured.

All contenders of one benchmark take turns in one run, each round in another order, so that whatever slows the machine down for a
while slows all of them down. The first rounds warm up caches and pools and are thrown away.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import final

Tick = Callable[[], object]
"""Told after every trial, for whoever watches the progress."""

WARM_UP = 3
"""Rounds that are thrown away: the first makes the warden and its pool, the next ones fill caches. Fewer when runs are few."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One measured value, in the benchmark's unit, and how many processes were alive when they should have been gone.

    `hung`: it did not come back by itself. `lied`: it said that nothing was left, and something was.
    """

    value: float
    left: int = 0
    hung: bool = False
    lied: bool = False


@final
@dataclass(slots=True)
class Series:
    """All trials of one contender."""

    name: str
    trials: list[Trial] = field(default_factory=list)

    @property
    def values(self) -> list[float]:
        """The values, ascending."""
        return sorted(trial.value for trial in self.trials)

    @property
    def left(self) -> int:
        """Survivors over all trials."""
        return sum(trial.left for trial in self.trials)

    @property
    def hung(self) -> int:
        """Trials that did not come back by themselves; their value is the bound at which they were given up."""
        return sum(trial.hung for trial in self.trials)

    @property
    def lies(self) -> int:
        """Trials in which it said that nothing was left, and something was."""
        return sum(trial.lied for trial in self.trials)

    @property
    def p50(self) -> float:
        """The median."""
        return median(self.values)

    def percentile(self, percent: float) -> float:
        """The smallest value that so many percent of the trials do not exceed (nearest rank): always one that was measured."""
        values = self.values
        return values[max(0, math.ceil(len(values) * percent / 100) - 1)]


@dataclass(frozen=True, slots=True)
class Contender:
    """Somebody who does the thing once, under a name."""

    name: str
    trial: Callable[[], Awaitable[Trial]]


async def interleave(contenders: Sequence[Contender], runs: int, tick: Tick = lambda: None) -> list[Series]:
    """Let each contender do `runs` trials in turn with the others. Series in the order of the contenders."""
    series = [Series(one.name) for one in contenders]
    warm_up = min(WARM_UP, runs // 4)
    for turn in range(-warm_up, runs):
        for place in range(len(contenders)):
            index = (place + turn) % len(contenders)  # nobody is always the one after the slow one
            trial = await contenders[index].trial()
            if turn >= 0:
                series[index].trials.append(trial)
                tick()
    return series
