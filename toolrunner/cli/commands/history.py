"""`toolrunner history check` and `history repair`: a conversation in a file, looked at and mended the way its provider wants it.

No state. Nothing is sent anywhere, and the file is never written; what is foreign is printed harmlessly.
"""

import json as codec
from typing import Annotated, Any

import typer

from toolrunner.cli import exit_codes
from toolrunner.cli.commands.options import AsJson, content_of, group
from toolrunner.cli.json_words import why_no_json
from toolrunner.cli.printable import printable
from toolrunner.cli.voice import complain
from toolrunner.errors import ConfigError
from toolrunner.history import check as check_messages
from toolrunner.history import repair as repair_messages
from toolrunner.history.shapes import shape_of
from toolrunner.wire import MalformedItem, Provider

LONGEST = 500
"""Characters of one foreign text in a line."""

HISTORY = "Look at a conversation in a file, or mend it, by the rules of its provider."

CHECK = """Say what a provider would refuse in this conversation, were it sent now: the rule, the place, and what is wrong there.

FILE is JSON: a list of messages, or a request that holds one (`messages`, `input`, `contents`); - is standard input.

\b
  toolrunner history check request.json --provider anthropic
  toolrunner history check - --provider openai_responses --json < request.json

Exit status: 0 when nothing would be refused, 1 when something would, 2 when it is no such file.
"""

REPAIR = """Print the conversation as its provider takes it, and say on standard error what was done to it.

Calls without a result are answered with a text that claims nothing. What is left out is told, never dropped in silence; what is
whole stays as it is. With --json both are one line: the history and the list of repairs, each with what it left out.

\b
  toolrunner history repair request.json --provider anthropic > mended.json
"""

app = group(HISTORY, "Check a conversation in a file, or mend it.")

File = Annotated[str, typer.Argument(metavar="FILE|-", help="A JSON list of messages, or a request; - is standard input.")]
Of = Annotated[str, typer.Option("--provider", metavar="P", help=f"Whose rules: {', '.join(Provider)}.")]


@app.command("check", help=CHECK, short_help="Say what a provider would refuse.")
def _check(file: File, *, provider: Of, json: AsJson = False) -> int:
    shape = _shape(provider)
    messages, _ = _messages(_read(file), shape.field)
    try:
        found = check_messages(messages, provider)
    except MalformedItem as error:
        raise typer.BadParameter(printable(error, LONGEST)) from error
    if json:
        rows = [{"rule": one.rule, "position": one.position, "text": one.text} for one in found]
        typer.echo(codec.dumps(rows, ensure_ascii=False, separators=(",", ":")))
    else:
        for one in found:
            typer.echo(printable(f"{one.rule}  {one.position}  {one.text}", LONGEST))
    return exit_codes.FAILED if found else 0


@app.command("repair", help=REPAIR, short_help="Print it as its provider takes it.")
def _repair(file: File, *, provider: Of, json: AsJson = False) -> int:
    shape = _shape(provider)
    whole = _read(file)
    messages, is_request = _messages(whole, shape.field)
    try:
        done = repair_messages(messages, provider)
    except MalformedItem as error:
        raise typer.BadParameter(printable(error, LONGEST)) from error
    mended = {**whole, shape.field: messages} if is_request else messages
    if json:
        rows = [{"rule": one.rule, "position": one.position, "text": one.text, "removed": one.removed} for one in done]
        typer.echo(codec.dumps({"history": mended, "repairs": rows}, ensure_ascii=False, separators=(",", ":")))
        return 0
    typer.echo(codec.dumps(mended, ensure_ascii=False, indent=2))
    for one in done:
        left_out = "" if one.removed is None else f": {codec.dumps(one.removed, ensure_ascii=False)}"
        complain(f"{one.rule}  {one.position}  {one.text}{left_out}")
    return 0


def _shape(provider: str) -> Any:
    try:
        return shape_of(provider)
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from error


def _read(file: str) -> Any:
    content = content_of(file)
    try:
        return codec.loads(content)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{file!r} is no JSON: {printable(why_no_json(error), LONGEST)}") from error


def _messages(whole: Any, field: str) -> tuple[list[Any], bool]:
    """The list of messages, and whether it lay in a request."""
    found = whole.get(field) if isinstance(whole, dict) else whole
    if not isinstance(found, list):
        raise typer.BadParameter(f"expected a list of messages, or an object with one under {field!r}")
    return found, isinstance(whole, dict)
