"""`--sandbox` and `--require`: the profile that contains a command, and what it must hold. No state."""

from typing import Annotated

import typer

from toolrunner.sandbox import Sandbox

OwnSandbox = Annotated[
    str | None,
    typer.Option("--sandbox", metavar="P", help="Contain it: a profile by name (read-only, workspace-write, ...) or file."),
]
OwnGuarantees = Annotated[
    list[str] | None,
    typer.Option("--require", metavar="G", help="Start nothing unless the sandbox gives this (fs_write, network, ...)."),
]


def chosen_sandbox(profile: str | None, require: list[str] | None) -> Sandbox | None:
    """What the two options ask for. Raises ProfileError."""
    if profile is not None:
        return Sandbox(profile, require=tuple(require or ()))
    if require:
        raise typer.BadParameter("--require needs --sandbox, which says what is to give it")
    return None
