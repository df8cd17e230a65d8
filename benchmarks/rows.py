"""Row: what one benchmark says of one pair of contenders, and the bound it is held to. No state."""

from dataclasses import asdict, dataclass
from typing import Any, final

from benchmarks.measure import Series


@final
@dataclass(frozen=True, slots=True)
class Bound:
    """What must hold; None = is not asked. `p50` is in the row's unit, `over` is how much the p50 may be above the baseline's."""

    p50: float | None = None
    ratio: float | None = None
    over: float | None = None
    ratio_at_least: float | None = None
    left: int | None = None

    def text(self, unit: str) -> str:
        """The bound in words."""
        parts = [
            f"p50 <= {self.p50:g} {unit}" if self.p50 is not None else "",
            f"ratio <= {self.ratio:.3g}" if self.ratio is not None else "",
            f"p50 <= baseline + {self.over:g} {unit}" if self.over is not None else "",
            f"ratio >= {self.ratio_at_least:g}" if self.ratio_at_least is not None else "",
            f"left {self.left}" if self.left is not None else "",
        ]
        return ", ".join(part for part in parts if part)

    def holds(self, own: Series, baseline: Series | None) -> bool | None:
        """Whether it holds; None when it speaks of a baseline that could not be measured."""
        relative = (self.ratio, self.over, self.ratio_at_least)
        if baseline is None and any(one is not None for one in relative):
            return None
        base = baseline.p50 if baseline is not None else 0.0
        return (
            own.lies == 0
            and (self.p50 is None or own.p50 <= self.p50)
            and (self.ratio is None or own.p50 <= self.ratio * base)
            and (self.over is None or own.p50 <= base + self.over)
            and (self.ratio_at_least is None or own.p50 >= self.ratio_at_least * base)
            and (self.left is None or own.left <= self.left)
        )


@final
@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report; `--json` prints its fields. Times are milliseconds unless `unit` says something else.

    `left` and `baseline_left` count survivors over all `n` trials, `baseline_hung` trials of the baseline that did not come back,
    `lies` our claims that nothing was left when something was. `within` is None where there is no bound, or no baseline for it.
    """

    name: str
    n: int
    p50: float
    p95: float
    p99: float
    baseline: str | None = None
    baseline_p50: float | None = None
    ratio: float | None = None
    left: int = 0
    baseline_left: int | None = None
    baseline_hung: int | None = None
    lies: int = 0
    bound: str = ""
    within: bool | None = None
    unit: str = "ms"
    subject: str = "toolrunner"
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return asdict(self)


def row(
    name: str, own: Series, baseline: Series | None = None, *, bound: Bound | None = None, unit: str = "ms", note: str = ""
) -> Row:
    """Say what the two series say."""
    base = baseline.p50 if baseline is not None else None
    return Row(
        name=name,
        n=len(own.trials),
        p50=_figures(own.p50),
        p95=_figures(own.percentile(95)),
        p99=_figures(own.percentile(99)),
        baseline=baseline.name if baseline is not None else None,
        baseline_p50=None if base is None else _figures(base),
        ratio=_figures(own.p50 / base) if base else None,
        left=own.left,
        baseline_left=baseline.left if baseline is not None else None,
        baseline_hung=baseline.hung if baseline is not None else None,
        lies=own.lies,
        bound=bound.text(unit) if bound is not None else "",
        within=bound.holds(own, baseline) if bound is not None else None,
        unit=unit,
        subject=own.name,
        note=note,
    )


def _figures(value: float) -> float:
    """Four figures: more would claim more than any of this can measure."""
    return float(f"{value:.4g}")
