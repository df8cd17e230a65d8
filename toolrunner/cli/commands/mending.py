"""`toolrunner recover`, `reconcile`, `journal check` and `journal export`: a journal looked after by hand.

No state. The first two write, so they become the journal's owner first; while another program owns it they are refused.
"""

import json as codec
import sys
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from toolrunner import recovery
from toolrunner.cli import exit_codes
from toolrunner.cli.commands.options import AsJson, Journal, Session
from toolrunner.cli.printable import printable
from toolrunner.cli.sessions import NotFound, find_run, place_of
from toolrunner.facts import EffectState
from toolrunner.journal import JournalReader, Place, SqliteJournal, check, export
from toolrunner.records import CallReconciled, CallSettled
from toolrunner.recovery import Life, Survivor
from toolrunner.results import ToolResult, result_to_dict

LONGEST = 1_000
"""Characters of one foreign text in a line."""


def recover(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before processes are ended.")] = False,
    json: AsJson = False,
    session: Session = None,
    journal: Journal = None,
) -> int:
    """Give every call whose host is gone its result, and end what it left running."""
    place = place_of(session, journal)
    with JournalReader(place.path) as reader:
        found = recovery.dry_run(reader)
    alive = [one for one in found.survivors if one.life is Life.ALIVE]
    if not dry_run and alive and not yes and not json and sys.stdin.isatty() and sys.stdout.isatty():
        _print_recovered(place, found, done=False)
        if not typer.confirm("End these processes?"):
            return exit_codes.FAILED
    if not dry_run:
        found = anyio.run(_recover, place)
    if json:
        typer.echo(codec.dumps(_recovered_json(place, found, dry_run=dry_run), ensure_ascii=False, separators=(",", ":")))
    else:
        _print_recovered(place, found, done=not dry_run)
    return exit_codes.FAILED if not dry_run and any(one.life is Life.ALIVE for one in found.survivors) else 0


async def _recover(place: Place) -> recovery.Recovered:
    async with aclosing(SqliteJournal.open(place.path)) as journal:
        return await recovery.recover(journal, ends=True)


def _recovered_json(place: Place, found: recovery.Recovered, *, dry_run: bool) -> dict[str, Any]:
    return {
        "journal": str(place.path),
        "dry_run": dry_run,
        "results": [result_to_dict(one) for one in found.plan.results],
        "pending": [one.run_id for one in found.plan.pending],
        "processes": [
            {"pid": one.identity.pid, "name": one.name, "life": str(one.life), "signals": list(one.signals)}
            for one in found.survivors
        ],
    }


def _print_recovered(place: Place, found: recovery.Recovered, *, done: bool) -> None:
    for line in _told(found, done=done):
        typer.echo(line)
    alive = any(one.life is Life.ALIVE for one in found.survivors)
    if not found.plan.results and not found.plan.pending and not alive:
        typer.echo(f"{printable(place.path)}: nothing to recover; every call has its result")


def _told(found: recovery.Recovered, *, done: bool) -> Iterator[str]:
    for result in found.plan.results:
        yield _line(result)
    for story in found.plan.pending:
        yield f"{printable(story.run_id[:8])}  waits for the answer to a question that was asked elsewhere"
    for one in found.survivors:
        yield f"pid {one.identity.pid}  {printable(one.name, LONGEST)}: {_of_survivor(one, done=done)}"


def _line(result: ToolResult) -> str:
    code = f" ({result.code})" if result.code is not None else ""
    return f"{printable(result.run_id[:8])}  {result.outcome}{code}: {printable(result.summary(), LONGEST)}"


_LIVES = {
    Life.GONE: "gone: the machine was started anew since",
    Life.NOT_FOUND: "not found any more; what it left elsewhere would not be seen",
    Life.NOT_CHECKED: "not checked: it belongs to another pid namespace or host; nothing was touched",
}


def _of_survivor(one: Survivor, *, done: bool) -> str:
    sent = " then ".join(one.signals)
    if one.life is Life.ALIVE:
        return f"still running after {sent}" if done else f"still running, with {len(one.found)} processes; it would be ended"
    return f"ended by {sent}" if sent else _LIVES[one.life]


class As(StrEnum):
    """What became of a call, in the user's word."""

    COMPLETED = "completed"
    NONE = "none"


def reconcile(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A prefix of the call's run id or call id.")],
    *,
    as_: Annotated[As, typer.Option("--as", help="Did it take effect, or not?")],
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="How you know; it is kept.")] = "",
    json: AsJson = False,
    session: Session = None,
    journal: Journal = None,
) -> int:
    """Say what became of a call whose effects are not known."""
    place = place_of(session, journal)
    with JournalReader(place.path) as reader:
        run_id = find_run(reader, run)
        _require_doubt(reader, run_id)
    record = CallReconciled(run_id=run_id, as_="completed" if as_ is As.COMPLETED else "none", by="user", note=note)
    anyio.run(_append, place, record)
    if json:
        typer.echo(codec.dumps({"run_id": run_id, "as": str(as_), "by": "user", "note": note}, ensure_ascii=False))
    else:
        typer.echo(f"{printable(run_id[:8])}  is on record as {as_}, by you")
    return 0


def _require_doubt(reader: JournalReader, run_id: str) -> None:
    """Raises `NotFound` for a call of which more is known than anybody could say."""
    entries = reader.of_run(run_id)
    settled = [one.record.result for one in entries if isinstance(one.record, CallSettled)]
    if not settled:
        raise NotFound(f"call {run_id} has no result yet; if its host is gone, use toolrunner recover first")
    if settled[-1].effects.state not in (EffectState.UNKNOWN, EffectState.PARTIAL):
        raise NotFound(f"call {run_id} is in no doubt: its effects are {settled[-1].effects.state}")


async def _append(place: Place, record: CallReconciled) -> None:
    async with aclosing(SqliteJournal.open(place.path)) as journal:
        pending = journal.append(record)
        if pending is not None:
            await pending


File = Annotated[Path | None, typer.Argument(metavar="[FILE]", help="The journal, as with --journal.")]


def _named(file: Path | None, session: str | None, journal: Path | None) -> Place:
    """The journal that is meant. Raises as `place_of`, and for a file that is named beside an option."""
    if file is not None and (session is not None or journal is not None):
        raise typer.BadParameter("FILE, --session and --journal all name a journal; give one of them")
    return place_of(session, journal if file is None else file)


def check_journal(file: File = None, *, json: AsJson = False, session: Session = None, journal: Journal = None) -> int:
    """Look whether a journal is whole."""
    report = check(_named(file, session, journal).path)
    if json:
        facts = {
            "journal": str(report.path),
            "whole": report.is_whole,
            "records": report.records,
            "calls": report.calls,
            "openings": report.openings,
            "unknown": report.unknown,
            "unsettled": list(report.unsettled),
            "problems": list(report.problems),
        }
        typer.echo(codec.dumps(facts, ensure_ascii=False, separators=(",", ":")))
        return 0 if report.is_whole else exit_codes.FAILED
    _print_lines(printable(problem, LONGEST) for problem in report.problems)
    word = "whole" if report.is_whole else f"NOT whole, {len(report.problems)} problems"
    later = f", {report.unknown} records of a later version" if report.unknown else ""
    open_ = f", {len(report.unsettled)} without a result" if report.unsettled else ""
    typer.echo(f"{printable(report.path)}: {word}; {report.records} records, {_calls(report.calls)}{open_}{later}")
    return 0 if report.is_whole else exit_codes.FAILED


def _calls(count: int) -> str:
    return f"{count} call{'s' if count != 1 else ''}"


def export_journal(
    file: File = None,
    *,
    raw: Annotated[bool, typer.Option("--raw", help="With everything that calls were given and gave back.")] = False,
    session: Session = None,
    journal: Journal = None,
) -> int:
    """Print a journal as JSON Lines, without what is foreign in it."""
    _print_lines(export(_named(file, session, journal).path, raw=raw))
    return 0


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)
