"""The tool `list_dir`. No state."""

import os
import stat
from typing import Annotated, Any

from pydantic import Field, JsonValue

from toolrunner.facts import Text
from toolrunner.tools.builtin.problems import refused
from toolrunner.tools.builtin.reading import Check
from toolrunner.tools.builtin.roots import PathText, printable
from toolrunner.tools.builtin.space import Space
from toolrunner.tools.builtin.walking import Place, follow, kind_of, missing, wrong_kind
from toolrunner.tools.context import ToolContext
from toolrunner.tools.decorator import tool
from toolrunner.tools.reply import Reply
from toolrunner.tools.tool import Tool

MOST_SHOWN = 1_000
"""Entries of one result: a model that is shown more reads none of them."""

MOST_READ = 100_000
"""Names that are read so that they can be sorted and counted; of a larger folder an arbitrary part is shown, and said so."""


def list_dir_tool(space: Space) -> Tool[..., Any]:
    """`list_dir` for these roots."""

    @tool(read_only=True, idempotent=True, open_world=False)
    def list_dir(  # noqa: D417 - the docstring is the model's, which never sees ctx
        ctx: ToolContext[Any], path: PathText = ".", offset: Annotated[int, Field(ge=0)] = 0
    ) -> Reply:
        """List a folder, sorted by name: folders end in /, symlinks show where they lead, files have their size in bytes.

        Args:
            path: The folder.
            offset: How many entries to leave out from the beginning.
        """
        with follow(space.roots, path) as place:
            shown = space.roots.shown(place.real)
            if place.found is None:
                raise missing(space.roots, place)
            if not stat.S_ISDIR(place.found.st_mode):
                raise wrong_kind(space.roots, place, "a folder")
            try:
                names, counted = _names(place, ctx.signal.raise_if_aborted)
                lines = _lines(place, names[offset:], space.shown, ctx.signal.raise_if_aborted)
            except OSError as error:
                raise refused(shown, error) from error
        return _reply(shown, lines, offset, len(names), counted=counted)

    return list_dir


def _names(place: Place, check: Check) -> tuple[list[str], bool]:
    """The names in the folder, sorted, and whether these are all."""
    fd = os.open(place.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.folder)
    try:
        with os.scandir(fd) as entries:
            names: list[str] = []
            for entry in entries:
                if len(names) == MOST_READ:
                    return sorted(names), False
                if len(names) % 1_000 == 0:
                    check()
                names.append(entry.name)
            return sorted(names), True
    finally:
        os.close(fd)


def _lines(place: Place, names: list[str], most: int, check: Check) -> list[str]:
    fd = os.open(place.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.folder)
    lines: list[str] = []
    try:
        for name in names[:MOST_SHOWN]:
            check()
            line = _line(name, fd)
            most -= len(line.encode()) + 1
            if most < 0 and lines:
                break
            lines.append(line)
    finally:
        os.close(fd)
    return lines


def _line(name: str, folder: int) -> str:
    # A name may hold a line break, which must not look like another entry.
    shown = printable(name).replace("\n", "\\n").replace("\r", "\\r")
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            return f"{shown}/"
        if stat.S_ISLNK(found.st_mode):
            target = printable(os.readlink(name, dir_fd=folder))
            return f"{shown} -> " + target.replace("\n", "\\n").replace("\r", "\\r")
    except OSError:
        return f"{shown} (cannot be looked at)"
    return f"{shown} ({found.st_size})" if stat.S_ISREG(found.st_mode) else f"{shown} ({kind_of(found)})"


def _reply(shown: str, lines: list[str], offset: int, total: int, *, counted: bool) -> Reply:
    reached = offset + len(lines)
    more = total - reached
    note = ""
    if not lines:
        note = f"[{shown} is empty]" if not total else f"[{shown} has {total} entries]"
    elif more > 0 or not counted:
        all_of_them = str(total) if counted else f"more than {total} (an arbitrary part is listed)"
        note = f"[{shown}: entries {offset + 1} to {reached} of {all_of_them}" + (
            f"; go on with offset={reached}]" if more > 0 else "]"
        )
    entries: list[JsonValue] = list(lines)
    value: dict[str, JsonValue] = {"path": shown, "entries": entries, "offset": offset, "total": total, "complete": counted}
    return Reply(value, [Text(text) for text in ("\n".join(lines), note) if text])
