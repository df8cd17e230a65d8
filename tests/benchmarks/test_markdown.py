"""The tables for the README: who was compared stands side by side, the rest below, and nothing is said that was not measured."""

import io

import pytest

from benchmarks.benchmark import Report
from benchmarks.measure import Series, Trial
from benchmarks.report import print_markdown
from benchmarks.rows import Bound, row


def text_of(report: Report) -> list[str]:
    file = io.StringIO()
    print_markdown(report, file)
    return file.getvalue().splitlines()


def test_each_panel_is_one_line_with_survivors_and_median_of_everybody() -> None:
    ours, other = Series("ours", [Trial(1.0), Trial(3.0)]), Series("a|b", [Trial(5.0, left=2), Trial(7.0, hung=True, lied=True)])
    report = Report([row("first", ours, other, bound=Bound(left=0))], {"first: a shape": [ours, other]})
    assert text_of(report) == [
        "| 2 runs each: left, p50 | ours | a\\|b |",
        "| --- | --- | --- |",
        "| first: a shape | 0, 2 ms | **2**, 6 ms, 1 hung, 1 lied |",
        "",
    ]


@pytest.mark.parametrize("limit, word", [(1.0, "yes"), (0.5, "NO")])
def test_rows_that_are_in_no_panel_are_listed_with_their_bounds_and_notes(limit: float, word: str) -> None:
    grown = row("grown", Series("ours", [Trial(1.0)]), bound=Bound(p50=limit), unit="KiB", note="seed 1")
    assert text_of(Report([grown])) == [
        "|  | p50 | p95 | bound | within |",
        "| --- | --- | --- | --- | --- |",
        f"| grown | 1 KiB | 1 KiB | p50 <= {limit:g} KiB | {word} |",
        "",
        "seed 1",
        "",
    ]


def test_panels_with_different_fields_are_different_tables() -> None:
    one, two = Series("one", [Trial(1.0)]), Series("two", [Trial(1.0)])
    heads = [line for line in text_of(Report([], {"first": [one], "second": [one, two]})) if "runs each" in line]
    assert heads == ["| 1 runs each: left, p50 | one |", "| 1 runs each: left, p50 | one | two |"]
