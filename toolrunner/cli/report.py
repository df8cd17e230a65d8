"""What people read once a call is over: one line, or with details on a terminal. Reads a result; no state."""

import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolrunner.cli.printable import printable, shown
from toolrunner.facts import Change, NoteKind, StillRunning
from toolrunner.results import Outcome, ToolResult

T = TypeVar("T")

SHOWN = 8
"""Changes, processes and the like that are listed one by one."""

LONGEST = 200
"""Characters of one foreign text in the details."""

_STYLES: Mapping[Outcome, str] = {
    Outcome.SUCCEEDED: "green",
    Outcome.FAILED: "red",
    Outcome.ABORTED: "yellow",
    Outcome.TIMED_OUT: "yellow",
    Outcome.DENIED: "red",
    Outcome.REJECTED: "red",
}


def one_line(result: ToolResult) -> str:
    """The summary, for logs and scripts, and whether its journal took it: who reads that later finds nothing."""
    lost = "".join(f" {printable(note.text)}" for note in result.notes if note.kind is NoteKind.JOURNAL_ERROR)
    return f"toolrunner: {printable(result.summary())}{lost}\n"


def for_terminal(result: ToolResult, width: int) -> str:
    """The summary, then what else is known. Colour unless NO_COLOR or a dumb terminal says otherwise."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in ("dumb", "unknown")
    console = Console(
        file=io.StringIO(), width=width, force_terminal=True, no_color=plain, highlight=False, markup=False, emoji=False,
        color_system=None if plain else "standard", legacy_windows=False,
    )  # fmt: skip
    with console.capture() as captured:
        console.print(Text.assemble("toolrunner: ", shown(result.summary(), _STYLES[result.outcome])))
        rows = list(_details(result))
        if rows:
            table = Table.grid(padding=(0, 2))
            table.add_column(style="dim", no_wrap=True)
            table.add_column(overflow="fold")
            for name, value in rows:
                table.add_row(f"  {name}", value)
            console.print(table)
    return captured.get()


def says_nothing_new(result: ToolResult) -> bool:
    """Whether the command came to its own end, so that its output and exit status tell everything (`--quiet` is silent then)."""
    own_end = result.outcome is Outcome.SUCCEEDED or (result.outcome is Outcome.FAILED and result.process is not None)
    return own_end and result.started and not result.still_running and not result.notes and result.stop is None


def _details(result: ToolResult) -> Iterator[tuple[str, Text]]:
    yield from _of_stop(result)
    yield from _of_process(result)
    yield from (("changed", text) for text in _some(result.effects.changes or (), _change))
    yield from (("still running", text) for text in _some(result.still_running or (), _running))
    for missing in result.missing:
        yield "not assured", shown(missing, limit=LONGEST)
    for note in result.notes:
        yield "note", shown(note.text, limit=LONGEST)
    if result.started and result.outcome in (Outcome.ABORTED, Outcome.TIMED_OUT):
        yield "again?", Text(_AGAIN[result.retry])


_AGAIN = {
    "safe": "safe to repeat",
    "fix_first": "fix the cause first; nothing was changed that stands in the way",
    "check_first": "check what it did before you repeat it",
    "no": "no: it took effect",
}


def _of_stop(result: ToolResult) -> Iterator[tuple[str, Text]]:
    stop = result.stop
    if stop is None or not result.started:
        return
    took = ""
    if stop.ended_at is not None:
        seconds = (stop.ended_at - stop.requested_at).total_seconds()
        took = f", over after {seconds:.2f} s" if seconds >= 1 else f", over after {seconds * 1000:.0f} ms"
    sent = " then ".join(stop.signals) or "no signal was needed"
    yield "stop", Text(f"{sent}{took}")


def _of_process(result: ToolResult) -> Iterator[tuple[str, Text]]:
    process = result.process
    if process is None or not result.started:
        return
    yield from (("left over, ended", text) for text in _some(process.leftovers, _running))
    if process.truncated:
        total = process.stdout_bytes + process.stderr_bytes
        yield "output", Text(f"{total:,} bytes; the result keeps head and tail of each stream (--output-limit)")


def _some(items: Sequence[T], show: Callable[[T], Text]) -> Iterator[Text]:
    yield from map(show, items[:SHOWN])
    if len(items) > SHOWN:
        yield Text(f"and {len(items) - SHOWN} more")


def _change(change: Change) -> Text:
    shared = ", not only by this call" if change.attribution == "shared" else ""
    return Text.assemble(shown(change.path, limit=LONGEST), (f"  {change.kind}{shared}", "dim"))


def _running(one: StillRunning) -> Text:
    pid = f"pid {one.pid}  " if one.pid is not None else ""
    error = f"  ({printable(one.error)})" if one.error else ""
    return Text.assemble(pid, shown(one.what, limit=LONGEST), error)
