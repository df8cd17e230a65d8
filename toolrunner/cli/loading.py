"""Finds the tools that `--tools MODULE:NAME` names. Imports code of the user's; no state of its own but what that changes."""

import importlib
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import final

from toolrunner.errors import ToolrunnerError
from toolrunner.tools import AnyTool, Toolset, shell


@final
class BadTools(ToolrunnerError):
    """`--tools` names something that cannot be used."""

    def __init__(self, reference: str, why: str) -> None:
        super().__init__(f"--tools {reference}: {why}")


def load_tools(references: Iterable[str]) -> Toolset:
    """The built-in `shell` and everything named. A tool of the user's that is called shell takes the place of the built-in one.

    Raises:
        BadTools: with what is wrong, and where.
    """
    given: list[AnyTool] = []
    for reference in references:
        found = _load(reference)
        for one in found:
            if any(one.name == other.name and one is not other for other in given):
                raise BadTools(reference, f"there are two tools named {one.name!r}")
            given.append(one)
    builtin = [] if any(one.name == shell.name for one in given) else [shell]
    return Toolset([*builtin, *given])


def _load(reference: str) -> Toolset:
    module_name, colon, name = reference.partition(":")
    if not (colon and name and all(part.isidentifier() for part in module_name.split("."))):
        raise BadTools(reference, "expected MODULE:NAME, the name of a tool, a Toolset or a list of them in a module")
    value: object = _module(reference, module_name)
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise BadTools(reference, f"{module_name} has no {part!r}") from None
    try:
        return value if isinstance(value, Toolset) else Toolset(value if isinstance(value, list | tuple) else [value])  # type: ignore[list-item]
    except Exception as error:  # what it is made of is the user's
        raise BadTools(reference, f"{type(error).__name__}: {error}") from error


def _module(reference: str, name: str) -> object:
    with suppress(FileNotFoundError):  # the folder was removed
        here = str(Path.cwd())
        if here not in sys.path:  # a console script does not have it, and people's modules are where they work
            sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # the user's module, and whatever it does when it is imported
        raise BadTools(reference, f"cannot import {name}: {type(error).__name__}: {error}{_place(error)}") from error


def _place(error: BaseException) -> str:
    """Where in the user's code it happened; nothing for a module that is not there."""
    frames = [
        one for one in traceback.extract_tb(error.__traceback__) if "importlib" not in one.filename and one.filename != __file__
    ]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
