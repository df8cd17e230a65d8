"""Benchmark: one entry of the list, and what it is given and gives back. Frozen."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import final

from benchmarks.measure import Series, Tick
from benchmarks.rows import Row


class Field(StrEnum):
    """Who takes part."""

    EVERYBODY = "everybody"
    OURS = "ours"


@final
@dataclass(frozen=True, slots=True)
class Order:
    """How much is to be measured. `runs` are trials of each contender; `seconds` is for what measures a stretch of time.

    `field` says whom `shapes` measures besides us; other benchmarks compare with everybody.
    """

    runs: int
    tick: Tick = lambda: None
    seconds: float | None = None
    field: Field = Field.EVERYBODY


@final
@dataclass(slots=True)
class Report:
    """What came out: rows for the table, panels (title -> series) for the plot. Only series in milliseconds are plotted."""

    rows: list[Row] = field(default_factory=list)
    panels: dict[str, list[Series]] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark. `runs` is the default; `in_all` False: it is run only when named."""

    name: str
    about: str
    runs: int
    run: Callable[[Order], Awaitable[Report]]
    in_all: bool = True
