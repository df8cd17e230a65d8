"""The report: a table for people, one JSON object per row for programs. No state."""

import json
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.table import Table

from benchmarks.benchmark import Benchmark
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
        judged = (_number(row.ratio), row.bound, {True: "yes", False: "NO", None: ""}[row.within])
        table.add_row(*own, _left(row.left, row.lies, "lied"), *other, *judged)
    Console(file=file, width=None if file.isatty() else 220).print(table)
    file.writelines(f"{note}\n" for note in dict.fromkeys(f"{row.name}: {row.note}" for row in rows if row.note))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _left(left: int | None, others: int | None, what: str) -> str:
    return f"{'' if left is None else left}{f' ({what} {others})' if others else ''}"


def print_list(benchmarks: Iterable[Benchmark], file: TextIO) -> None:
    """What there is."""
    file.writelines(f"{one.name:<16} {one.about} ({one.runs} runs{'' if one.in_all else '; not in all'})\n" for one in benchmarks)
