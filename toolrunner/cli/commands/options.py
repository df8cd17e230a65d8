"""The options that several commands share, and how their output is shaped. No state."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from toolrunner.cli.journals import Where
from toolrunner.cli.voice import terminal_width

Session = Annotated[str | None, typer.Option("--session", metavar="NAME", help="The session of this name. Default: the newest.")]
Journal = Annotated[Path | None, typer.Option("--journal", metavar="PATH", help="The journal in this file.")]
OwnSession = Annotated[
    str | None, typer.Option("--session", metavar="NAME", help="Keep its records in this session. Default: a fresh one.")
]
OwnJournal = Annotated[Path | None, typer.Option("--journal", metavar="PATH", help="Keep its records in this file.")]
OwnPolicy = Annotated[
    str | None, typer.Option("--policy", metavar="P", help="Allow, ask, deny by this policy: a name or a file. Default: none.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def own_journal(session: str | None, journal: Path | None) -> Where:
    """What `OwnSession` and `OwnJournal` ask for."""
    if session is not None and journal is not None:
        raise typer.BadParameter("--session and --journal both name a journal; give one of them")
    return Where(journal, session)


def content_of(file: str) -> bytes:
    """All of a file that is named as an argument; - is standard input."""
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{file!r} cannot be read: {error.strerror}") from error


def group(text: str, short: str) -> typer.Typer:
    """A command that has commands. Named alone it prints its help, which is no bad usage."""
    made = typer.Typer(help=text, short_help=short, add_completion=False, rich_markup_mode=None)
    made.callback(invoke_without_command=True)(print_help_alone)
    return made


def print_help_alone(context: typer.Context) -> None:
    """Unless one of its commands was named."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def console() -> Console | None:
    """A console for a person at a terminal; None where plain lines are wanted."""
    if not sys.stdout.isatty():
        return None
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in ("dumb", "unknown")
    return Console(
        file=sys.stdout, width=terminal_width(1), force_terminal=True, no_color=plain, highlight=False, markup=False, emoji=False,
        color_system=None if plain else "standard", legacy_windows=False,
    )  # fmt: skip
