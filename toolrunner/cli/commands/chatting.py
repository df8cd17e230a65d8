"""`toolrunner chat`: its options. No state."""

from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from toolrunner.agent.providers import MissingExtra, open_model
from toolrunner.cli import exit_codes
from toolrunner.cli.chat import Chat, Wanted
from toolrunner.cli.commands.options import OwnJournal, OwnSession, own_journal
from toolrunner.cli.commands.policies import chosen
from toolrunner.cli.voice import complain
from toolrunner.tools.builtin import builtins
from toolrunner.wire import Provider

__all__ = ["CHAT", "chat"]

CHAT = """Talk to a model that may use the built-in tools: shell, files, search, jobs.

Esc or Ctrl-C stops a turn, and says what was asked to stop, that it has ended, and what outside may have changed. The
conversation is kept in a session; name one to go on with it later. Keys come from the SDK's own environment variables.

\b
  toolrunner chat --provider anthropic --model claude-sonnet-4-5 --session work
  toolrunner chat --provider openai_chat --model qwen3 --base-url http://127.0.0.1:8080/v1

Exit status: 0 at the end of the input, 1 when a turn failed, 125 when nothing could run, 130 when it was stopped.
"""


def chat(  # noqa: PLR0913 - each is an option people look for by name
    *,
    provider: Annotated[Provider, typer.Option("--provider", help="Whose API is spoken.")],
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="The model.")],
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="Where the API is. Default: the SDK's.")
    ] = None,
    system: Annotated[str, typer.Option("--system", metavar="TEXT", help="The system prompt.")] = "",
    root: Annotated[Path, typer.Option("--root", metavar="DIR", help="The folder that the tools work in.")] = Path(),
    policy: Annotated[
        str, typer.Option("--policy", metavar="P", help="Allow, ask, deny by this policy: a name or a file.")
    ] = "ask",
    max_steps: Annotated[int | None, typer.Option("--max-steps", metavar="N", min=1, help="Requests of one turn.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", metavar="N", min=1, help="Tokens of the whole session.")
    ] = None,
    session: OwnSession = None,
    journal: OwnJournal = None,
) -> int:
    """See `CHAT`."""
    where = own_journal(session, journal)
    more: dict[str, Any] = {"system": system, "max_steps": max_steps, "max_tokens": max_tokens}

    async def talk() -> int:
        # The client is made on the loop that it will be used on.
        opened = open_model(provider, model, base_url=base_url)
        wanted = Wanted(model=opened, tools=builtins(root), policy=chosen(policy), where=where, **more)
        return await Chat(wanted).run()

    try:
        return anyio.run(talk)
    except MissingExtra as error:
        complain(str(error))
        return exit_codes.REFUSED
