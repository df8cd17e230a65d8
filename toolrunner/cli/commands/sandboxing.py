"""`--sandbox` and `--require`: the profile that contains a command, and what it must hold. No state."""

from typing import Annotated

import typer

from toolrunner.sandbox import Sandbox, TransactionRules

OwnSandbox = Annotated[
    str | None,
    typer.Option("--sandbox", metavar="P", help="Contain it: a profile by name (read-only, workspace-write, ...) or file."),
]
OwnGuarantees = Annotated[
    list[str] | None,
    typer.Option("--require", metavar="G", help="Start nothing unless the sandbox gives this (fs_write, network, ...)."),
]


OwnTransaction = Annotated[
    bool, typer.Option("--transaction", help="Have its changes to the working directory discarded unless it succeeds.")
]


def chosen_sandbox(profile: str | None, require: list[str] | None, *, transaction: bool) -> Sandbox | None:
    """What the options ask for. Raises ProfileError."""
    if profile is not None:
        return Sandbox(profile, require=tuple(require or ()), transaction=TransactionRules() if transaction else None)
    if require or transaction:
        which = "--require" if require else "--transaction"
        raise typer.BadParameter(f"{which} needs --sandbox, which says what is to hold")
    return None
