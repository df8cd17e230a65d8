"""`python -m benchmarks`: every benchmark runs once with as little as it can, and prints the rows that its README promises."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.catalogue import BENCHMARKS

CHECKOUT = Path(__file__).parents[2]
pytestmark = pytest.mark.processes

FIELDS = {
    "name", "n", "p50", "p95", "p99", "baseline", "baseline_p50", "ratio", "left", "baseline_left", "baseline_hung", "lies",
    "bound", "within", "unit", "subject", "note",
}  # fmt: skip
LIMIT = 300.0
LESS = {"waiting": ("--seconds", "0.5"), "soak": ("--seconds", "0.5"), "shapes": ("--ours",)}
"""What makes the long ones short. Shapes with everybody are in test_shapes.py."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_without_a_name_it_lists_them_all() -> None:
    done = run()
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(BENCHMARKS)


@pytest.mark.parametrize("arguments", [("nothing",), ("abort_one", "--runs", "0"), ("soak", "--seconds", "1", "--minutes", "1")])
def test_misuse_is_refused(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).returncode == 2


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_prints_its_rows_and_leaves_nobody(name: str) -> None:
    """Whether its bounds hold is not asked here: this machine may be busy. That nobody is left and nothing is claimed, is."""
    done = run(name, "--json", "--runs", "1", *LESS.get(name, ()))
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr == ""
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows
    for row in rows:
        assert set(row) == FIELDS
        assert row["name"].startswith(name.removesuffix("s"))
        assert row["n"] >= 1
        assert row["p50"] <= row["p95"] <= row["p99"]
        assert (row["baseline"] is None) == (row["baseline_p50"] is None)
        assert row["lies"] == 0, row
        assert row["left"] == 0 or "best_effort" in row["subject"], row


def test_the_readme_names_every_benchmark() -> None:
    text = (CHECKOUT / "benchmarks" / "README.md").read_text()
    assert [name for name in BENCHMARKS if f"| `{name}` |" not in text] == []


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="the extra `bench` is not installed")
def test_a_plot_has_a_panel_per_shape_and_tells_survivors_at_the_curves(tmp_path: Path) -> None:
    """In a process of its own: matplotlib keeps its fonts open."""
    program = f"""
from pathlib import Path
from benchmarks.measure import Series, Trial
from benchmarks.plot import draw
some = Series("some way", [Trial(1.0, left=2), Trial(2.0, hung=True)])
print(draw({{"first": [some], "second": [Series("other", [Trial(0.0)])]}}, Path({str(tmp_path / "new")!r})))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, timeout=LIMIT, check=True
    )
    assert done.stdout.strip() == str(tmp_path / "new" / "latency.svg")
    text = "".join(ET.parse(done.stdout.strip()).getroot().itertext())  # noqa: S314 - our own file
    assert [what for what in ("first", "second", "some way: 2 left, 1 hung", "other: 0 left") if what not in text] == []


def test_a_plot_without_matplotlib_is_refused_before_anything_is_measured() -> None:
    if find_spec("matplotlib") is not None:
        pytest.skip("matplotlib is installed")
    done = run("abort_one", "--plot", "somewhere")
    assert done.returncode == 2
    assert "pip install" in done.stderr
