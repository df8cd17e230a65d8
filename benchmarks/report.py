"""The report: a table for people, one JSON object per row for programs. No state."""

import json
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table

from benchmarks.benchmark import Benchmark, Report
from benchmarks.measure import Series
from benchmarks.rows import Row


def print_json(rows: Iterable[Row], file: TextIO) -> None:
    """One row per line."""
    file.writelines(json.dumps(row.as_dict()) + "\n" for row in rows)
    file.flush()


def print_table(rows: Iterable[Row], file: TextIO) -> None:
    """The same, to be read."""
    table = Table(
        "benchmark", "who", "n", "p50", "p95", "p99", "unit", "left", "baseline", "p50", "left", "ratio", "bound", "within"
    )
    for row in rows:
        own = (row.name, row.subject, str(row.n), *map(_number, (row.p50, row.p95, row.p99)), row.unit)
        other = (row.baseline or "", _number(row.baseline_p50), _left(row.baseline_left, row.baseline_hung, "hung"))
        judged = (_number(row.ratio), row.bound, _judged(row))
        table.add_row(*own, _left(row.left, row.lies, "lied"), *other, *judged)
    Console(file=file, width=None if file.isatty() else 220).print(table)
    file.writelines(f"{note}\n" for note in dict.fromkeys(f"{row.name}: {row.note}" for row in rows if row.note))


def print_markdown(report: Report, file: TextIO) -> None:
    """What was compared side by side, one line per panel and one column per contender; then the rows that are in no panel."""
    fields = list(dict.fromkeys(tuple(series.name for series in panel) for panel in report.panels.values()))
    for names in fields:
        panels = {title: panel for title, panel in report.panels.items() if tuple(series.name for series in panel) == names}
        count = max(len(series.trials) for panel in panels.values() for series in panel)
        print_lines(
            [f"{count} runs each: left, p50", *names], [[title, *map(_cell, panel)] for title, panel in panels.items()], file
        )
    shown = {title.partition(":")[0] for title in report.panels}
    rows = [row for row in report.rows if row.name not in shown]
    if rows:
        lines = [
            [row.name, *(f"{_number(one)} {row.unit}" for one in (row.p50, row.p95)), row.bound, _judged(row)] for row in rows
        ]
        print_lines(["", "p50", "p95", "bound", "within"], lines, file)
    file.writelines(f"{note}\n\n" for note in dict.fromkeys(row.note for row in rows if row.note))


def print_lines(head: Sequence[str], lines: Iterable[Sequence[str]], file: TextIO) -> None:
    """One table."""
    for cells in (head, ["---"] * len(head), *lines):
        print("|", " | ".join(cell.replace("|", r"\|") for cell in cells), "|", file=file)
    print(file=file)


def _cell(series: Series) -> str:
    others = [f"{count} {what}" for count, what in ((series.hung, "hung"), (series.lies, "lied")) if count]
    return ", ".join([f"**{series.left}**" if series.left else "0", f"{_number(series.p50)} ms", *others])


def _judged(row: Row) -> str:
    return {True: "yes", False: "NO", None: ""}[row.within]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _left(left: int | None, others: int | None, what: str) -> str:
    return f"{'' if left is None else left}{f' ({what} {others})' if others else ''}"


def print_list(benchmarks: Iterable[Benchmark], file: TextIO) -> None:
    """What there is."""
    file.writelines(f"{one.name:<16} {one.about} ({one.runs} runs{'' if one.in_all else '; not in all'})\n" for one in benchmarks)
