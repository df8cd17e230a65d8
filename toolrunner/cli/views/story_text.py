"""One call's story for people: `toolrunner show`. Pure. Everything foreign goes through `printable`.

With bars to scale at a terminal, in plain lines elsewhere; the same facts in the same order.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from toolrunner.cli.printable import printable, shown
from toolrunner.cli.views.steps import compact
from toolrunner.cli.views.story import Story
from toolrunner.cli.views.styles import style_of
from toolrunner.cli.views.timeline import bar, duration, offset

LONGEST = 2_000
"""Characters of one foreign text; a result's content is `show --json`'s to tell in full."""

NARROWEST_BAR = 10
"""Columns that a bar needs to say anything."""

LABELS = 32
"""Columns beside the bars: what it is, and how long."""


def facts(story: Story) -> Iterator[tuple[str, str]]:
    """What is said of a call before its timeline: names and values, not made harmless yet."""
    yield "run", story.run_id
    if story.call_id is not None:
        yield "call", story.call_id
    if story.parent_run_id is not None:
        yield "child of", story.parent_run_id
    if story.idempotency_key is not None:
        yield "key", story.idempotency_key
    yield "began", story.began.astimezone().isoformat(sep=" ", timespec="milliseconds")
    yield "arguments", compact(story.arguments, LONGEST)


def outcome_facts(story: Story) -> Iterator[tuple[str, str]]:
    """What is said after it."""
    result = story.result
    if result is None:
        yield "outcome", f"none on record; it was {story.standing} when its journal was last written"
        return
    yield "outcome", f"{result.outcome} ({result.code})" if result.code is not None else str(result.outcome)
    yield "summary", result.summary()
    yield "effects", f"{result.effects.state}, {result.effects.evidence or 'no evidence'}"
    if result.error is not None:
        yield "error", f"{result.error.kind}: {result.error.message}"
    if result.about_run_id is not None:
        yield "about run", result.about_run_id
    for one in result.still_running or ():
        yield "still running", f"{one.what}" + (f" (pid {one.pid})" if one.pid is not None else "")
    for note in result.notes:
        yield "note", note.text
    yield "again?", result.retry


def plain(story: Story) -> str:
    """Lines of `name: value`, then a line for each step, then one for each stretch of time."""
    said = [f"{printable(story.name)}: {printable(story.verdict)}"]
    said += [f"{name}: {printable(value, LONGEST)}" for name, value in facts(story)]
    for step in story.steps:
        text = printable(step.text, LONGEST)
        said.append(f"{offset(step.offset)}  {step.name}" + (f"  {text}" if text else ""))
    said += [f"{one.name}: {_took(one.start, one.end)}" for one in story.stretches]
    said += [f"{name}: {printable(value, LONGEST)}" for name, value in outcome_facts(story)]
    return "\n".join(said) + "\n"


def for_terminal(story: Story, width: int) -> RenderableType:
    """The same with colour and bars, `width` columns wide."""
    head = Text.assemble(shown(story.name, "bold"), "  ", shown(story.verdict, style_of(story)))
    return Group(
        head, _table(facts(story)), Text(), _steps(story), Text(), _bars(story, width), Text(), _table(outcome_facts(story))
    )


def _table(rows: Iterator[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(f"  {name}", shown(value, limit=LONGEST))
    return table


def _steps(story: Story) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for step in story.steps:
        table.add_row(f"  {offset(step.offset)}", step.name, shown(step.text, limit=LONGEST))
    return table


def _bars(story: Story, width: int) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    room = max(NARROWEST_BAR, width - LABELS)
    for one in story.stretches:
        style = style_of(story) if one.name == "running" else "yellow" if one.name == "stopping" else "dim"
        table.add_row(f"  {one.name}", Text(bar(one, story.ends, room).ljust(room), style), _took(one.start, one.end))
    return table


def _took(start: float, end: float | None) -> str:
    return duration(None if end is None else end - start)


def as_json(story: Story, records: Sequence[dict[str, Any]], result: dict[str, Any] | None) -> dict[str, Any]:
    """The same for programs: who it was, its stretches of time, its records, its result."""
    return {
        "run_id": story.run_id,
        "call_id": story.call_id,
        "name": story.name,
        "arguments": story.arguments,
        "parent_run_id": story.parent_run_id,
        "idempotency_key": story.idempotency_key,
        "began": story.began.isoformat(),
        "standing": str(story.standing),
        "stretches": [{"name": one.name, "start": one.start, "end": one.end} for one in story.stretches],
        "records": list(records),
        "result": result,
    }
