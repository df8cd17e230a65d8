"""Distributions as curves: one panel per shape, log scale, survivors written at each curve. SVG by matplotlib, extra `bench`."""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Series

COLUMNS = 3
PANEL = (5.0, 3.4)
"""Inches."""

SMALLEST = 1e-4
"""Milliseconds; a log scale has no zero."""


class NotInstalled(Exception):
    """matplotlib is missing."""

    def __init__(self) -> None:
        super().__init__("--plot needs matplotlib: pip install 'agent-toolrunner[bench]'")


def require() -> None:
    """Raise `NotInstalled` before anything is measured that could not be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise NotInstalled


def draw(panels: Mapping[str, Sequence[Series]], folder: Path) -> Path | None:
    """Write FOLDER/latency.svg and return its path; None when there is nothing to draw."""
    require()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    if not panels:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    mpl.rcParams["svg.hashsalt"] = "toolrunner"  # the same figures give the same file
    mpl.rcParams["svg.fonttype"] = "none"  # text that can be read, searched and compared
    rows = -(-len(panels) // COLUMNS)
    figure = Figure(figsize=(PANEL[0] * COLUMNS, PANEL[1] * rows), layout="constrained")
    axes = figure.subplots(rows, COLUMNS, squeeze=False).flat
    for axis, (title, series) in zip(axes, panels.items(), strict=False):
        _panel(axis, title, series)
    for axis in list(axes):
        axis.set_visible(False)  # what is left of the last row
    path = folder / "latency.svg"
    figure.savefig(path, metadata={"Date": None})
    return path


def _panel(axis: Any, title: str, series: Sequence[Series]) -> None:
    for one in series:
        values = [max(value, SMALLEST) for value in one.values]
        shares = [(place + 1) / len(values) * 100 for place in range(len(values))]
        axis.step(values, shares, where="post", label=_label(one), linestyle="--" if one.left or one.hung else "-")
    axis.set_xscale("log")
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("ms", fontsize=8)
    axis.set_ylabel("% of trials", fontsize=8)
    axis.tick_params(labelsize=8)
    axis.grid(visible=True, which="both", alpha=0.25)
    axis.legend(fontsize=7, loc="lower right")


def _label(series: Series) -> str:
    hung = f", {series.hung} hung" if series.hung else ""
    return f"{series.name}: {series.left} left{hung}"
