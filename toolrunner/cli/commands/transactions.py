"""`toolrunner changes`, `apply` and `discard`: transactions that were kept, or that a crash left. No state of its own."""

import difflib
import json as codec
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from toolrunner.cli import exit_codes
from toolrunner.cli.commands.options import AsJson
from toolrunner.cli.printable import printable
from toolrunner.cli.sessions import NotFound
from toolrunner.cli.voice import complain
from toolrunner.results import Transaction
from toolrunner.sandbox.overlay import Layer, NoLayer, Settled, changes, find_layer, layers, settle
from toolrunner.sandbox.profile import Ending

LONGEST = 1_000
"""Characters of one foreign text in a line."""

DIFF_LIMIT = 1 << 20
"""Bytes of a file whose difference is printed; nobody reads more."""

Run = Annotated[str, typer.Argument(metavar="RUN", help="A prefix of the call's run id.")]

CHANGES = """Print what calls changed whose changes are kept apart: of one call, or of all that there are.

A transaction leaves its changes here when its profile says keep, or when its program died.

\b
  toolrunner changes
  toolrunner changes 3f2a --diff
  toolrunner changes --json | jq .changes
"""

APPLY = """Carry the changes of a call over to the folder it ran in. What somebody else changed since is left, and told.

\b
  toolrunner changes 3f2a --diff
  toolrunner apply 3f2a

Exit status: 0 when all of them were carried over, else 1.
"""

DISCARD = """Throw the changes of a call away.

\b
  toolrunner discard 3f2a

Exit status: 0 when they are gone, else 1.
"""


def print_changes(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="A prefix of the call's run id.")] = None,
    *,
    diff: Annotated[bool, typer.Option("--diff", help="Print the lines that differ.")] = False,
    json: AsJson = False,
) -> int:
    """Print what is kept apart."""
    kept = [_find(run)] if run is not None else layers()
    if not kept and not json:
        complain("no changes are kept apart")
    for layer in kept:
        found = changes(layer)
        if json:
            told = [{"path": each.path, "kind": str(each.kind)} for each in found]
            about = {"run_id": layer.name, "folder": layer.lower, "stage": str(layer.stage), "in_use": layer.is_in_use}
            typer.echo(codec.dumps({**about, "changes": told}, ensure_ascii=True, separators=(",", ":")))
            continue
        standing = "its call runs" if layer.is_in_use else str(layer.stage)
        typer.echo(f"{printable(layer.name, LONGEST)}  {printable(layer.lower, LONGEST)}  {standing}, {len(found)} changes")
        for each in found:
            typer.echo(f"  {each.kind:<9} {printable(each.path, LONGEST)}")
            for line in _difference(layer, each.path) if diff else ():
                typer.echo(f"    {printable(line, LONGEST)}")
    return 0


def apply(run: Run) -> int:
    """Carry them over."""
    return _settle(run, Ending.COMMIT, Transaction.COMMITTED)


def discard(run: Run) -> int:
    """Throw them away."""
    return _settle(run, Ending.DISCARD, Transaction.DISCARDED)


def _find(run: str) -> Layer:
    try:
        return find_layer(run)
    except NoLayer as error:
        raise NotFound(str(error)) from error


def _settle(run: str, ending: Ending, wanted: Transaction) -> int:
    layer = _find(run)
    if layer.is_in_use:
        raise NotFound(f"the call {layer.name} still runs; stop it first (toolrunner cancel)")
    settled = settle(layer, ending)
    typer.echo(f"{printable(layer.name, LONGEST)}  {settled.transaction}, {len(settled.changes)} changes")
    _complain(settled)
    return 0 if settled.transaction is wanted else exit_codes.FAILED


def _complain(settled: Settled) -> None:
    for path in settled.conflicts:
        complain(f"left as it was: {printable(path, LONGEST)} (changed by somebody else since, or not to be written)")
    if settled.problem is not None:
        complain(printable(settled.problem, LONGEST))


def _difference(layer: Layer, path: str) -> Iterator[str]:
    before, after = _lines(Path(layer.lower, path)), _lines(Path(layer.upper, path))
    if before is None or after is None:
        return
    yield from difflib.unified_diff(before, after, "before", "after", lineterm="")


def _lines(path: Path) -> list[str] | None:
    """Nothing for what is not there; None for what is no text of a sane size."""
    try:
        if path.is_symlink() or not path.is_file():
            return [] if not path.is_dir() else None
        with path.open("rb") as file:
            content = file.read(DIFF_LIMIT + 1)
        return content.decode("utf-8").splitlines() if len(content) <= DIFF_LIMIT else None
    except (OSError, UnicodeDecodeError):
        return None
