"""`toolrunner log` and `toolrunner show`: what a journal says, for people and for programs. They change nothing. No state."""

import json as codec
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, final

import typer

from toolrunner.cli.commands.options import AsJson, Journal, Session, console
from toolrunner.cli.files import write_file
from toolrunner.cli.records import record_dict, record_line
from toolrunner.cli.sessions import find_run, noted, place_of
from toolrunner.cli.views.listing import plain_line, styled_line
from toolrunner.cli.views.page import About, page
from toolrunner.cli.views.story import stories, story
from toolrunner.cli.views.story_text import as_json, for_terminal, plain
from toolrunner.journal import Entry, JournalReader, OwnerState, owner_of
from toolrunner.records import CallRecorded
from toolrunner.results import result_to_dict

LOOK_EVERY = 0.1
"""Seconds between two looks at a journal that is followed; each is one number read from shared memory."""


def log(
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as long as its owner is at work.")] = False,
    run: Annotated[str | None, typer.Option("--run", metavar="ID", help="One call only: a prefix of its run or call id.")] = None,
    json: AsJson = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the session as one page.")] = None,
    session: Session = None,
    journal: Journal = None,
) -> int:
    """Print the records of a journal, in order."""
    if html is not None and (follow or json or run is not None):
        raise typer.BadParameter("--html is about the whole session as it is now; leave out --follow, --run and --json")
    with JournalReader(place_of(session, journal).path) as reader:
        if html is not None:
            _write_page(reader, html)
            return 0
        printer = _Printer(json=json)
        if run is not None and not follow:
            printer.print(reader.of_run(find_run(reader, run)))
            return 0
        _print_all(reader, printer, follow=follow, only=find_run(reader, run) if run is not None else None)
    return 0


def _print_all(reader: JournalReader, printer: "_Printer", *, follow: bool, only: str | None) -> None:
    seq = 0
    while True:
        # Asked first: what its owner wrote last is there once it is gone, so one more look shows all of it.
        is_last = not follow or owner_of(reader.place)[0] is OwnerState.NONE
        while entries := reader.since(seq):
            seq = entries[-1].seq
            printer.print(one for one in entries if only is None or one.record.run_id == only)
        if is_last:
            return
        while not reader.changed() and owner_of(reader.place)[0] is not OwnerState.NONE:
            time.sleep(LOOK_EVERY)


@final
class _Printer:
    """Prints entries as they come. State: the names of the calls seen so far."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._names: dict[str, str] = {}
        self._console = console()

    def print(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            record = entry.record
            if self._json:
                typer.echo(record_line(record, entry.seq, whole=True), nl=False)
                continue
            if isinstance(record, CallRecorded):
                self._names[record.run_id] = record.name
            name = self._names.get(record.run_id, "")
            if self._console is not None:
                self._console.print(styled_line(record, name), soft_wrap=True)
            else:
                typer.echo(plain_line(record, name))
        sys.stdout.flush()


def _write_page(reader: JournalReader, target: Path) -> None:
    found = stories(noted(reader, reader.openings()))
    at_work = owner_of(reader.place)[0] is OwnerState.ALIVE
    about = About(reader.session or reader.path.name, str(reader.path), datetime.now(UTC), open_end=at_work)
    write_file(target, page(found, about).encode(errors="replace"))


def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A prefix of the call's run id or call id.")],
    *,
    json: AsJson = False,
    session: Session = None,
    journal: Journal = None,
) -> int:
    """Print one call's story."""
    with JournalReader(place_of(session, journal).path) as reader:
        entries = reader.of_run(find_run(reader, run))
        told = story(noted(entries, reader.openings()))
    if json:
        result: dict[str, Any] | None = result_to_dict(told.result) if told.result is not None else None
        records = [record_dict(entry.record, entry.seq) for entry in entries]
        typer.echo(codec.dumps(as_json(told, records, result), ensure_ascii=False, separators=(",", ":")))
        return 0
    screen = console()
    if screen is None:
        typer.echo(plain(told), nl=False)
    else:
        screen.print(for_terminal(told, screen.width))
    return 0
