"""`python -m benchmarks`: lists the benchmarks, runs those named, prints what came out.

Exit status: 0; 1 when a bound did not hold, somebody was left by us or a claim of ours was not true; 2 for misuse.
"""

import argparse
import resource
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio

from benchmarks.benchmark import Benchmark, Field, Order, Report
from benchmarks.catalogue import BENCHMARKS
from benchmarks.plot import NotInstalled, draw, require
from benchmarks.progress import Watching
from benchmarks.report import print_json, print_list, print_markdown, print_table
from benchmarks.victims.scene import marked, seen

ALL = "all"


def main(arguments: Sequence[str]) -> int:
    """The whole program."""
    options = _parser().parse_args(arguments)
    if options.name is None:
        print_list(BENCHMARKS.values(), sys.stdout)
        return 0
    try:
        if options.plot is not None:
            require()
    except NotInstalled as error:
        print(error, file=sys.stderr)
        return 2
    _raise_fd_limit()
    chosen = [one for one in BENCHMARKS.values() if one.in_all] if options.name == ALL else [BENCHMARKS[options.name]]
    report = _run_all(chosen, options)
    return _finish(report, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Measures toolrunner next to what else there is.")
    parser.add_argument(
        "name", nargs="?", choices=[*BENCHMARKS, ALL], metavar="NAME", help=f"a benchmark, or {ALL!r}; without: a list"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object per row")
    form.add_argument("--markdown", action="store_true", help="tables for a README")
    parser.add_argument("--ours", action="store_true", help="`shapes` without the baselines, which take most of its time")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="draw the distributions into DIR/latency.svg")
    parser.add_argument(
        "--runs", type=_count, metavar="N", help="trials of each contender, instead of the benchmark's own number"
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=_length(60.0), dest="seconds", metavar="N", help="how long a soak lasts")
    length.add_argument(
        "--seconds", type=_length(1.0), dest="seconds", metavar="N", help="the same; for `waiting`, the end's delay"
    )
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("1 or more")
    return number


def _length(unit: float) -> partial[float]:
    return partial(_seconds, unit)


def _seconds(unit: float, text: str) -> float:
    seconds = float(text) * unit
    if not 0 < seconds < 7 * 86400:
        raise argparse.ArgumentTypeError("more than nothing, less than a week")
    return seconds


def _raise_fd_limit() -> None:
    """200 processes at once need more than the usual 1024 descriptors: three pipes and a lifeline each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _run_all(chosen: Sequence[Benchmark], options: argparse.Namespace) -> Report:
    together = Report()
    with Watching() as watching:
        for one in chosen:
            watching.begin(one.name)
            order = Order(
                options.runs or one.runs, watching.tick, options.seconds, Field.OURS if options.ours else Field.EVERYBODY
            )
            report = anyio.run(one.run, order)
            together.rows += report.rows
            together.panels |= report.panels
            if options.json:  # as they come: a long run that is stopped half-way has said what it knew
                print_json(report.rows, sys.stdout)
    return together


def _finish(report: Report, options: argparse.Namespace) -> int:
    if options.markdown:
        print_markdown(report, sys.stdout)
    elif not options.json:
        print_table(report.rows, sys.stdout)
    if options.plot is not None and (path := draw(report.panels, options.plot)) is not None:
        print(path, file=sys.stderr)
    left = seen(marked())  # the last look, long after the first trials
    if left:
        print(f"still alive after the run: {left}", file=sys.stderr)
    return 1 if left or any(row.within is False for row in report.rows) else 0
