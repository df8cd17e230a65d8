"""The tool `read_file`. No state.

A sync tool, as all tools on files here: its body runs in a thread of the runner's own, so a slow disk holds up nobody else, and
it is never cut in the middle. It looks at its signal before each chunk. (An async body would have to block the loop, or to wait
for a thread with an await that a native cancel goes through.)
"""

import os
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from toolrunner.errors import ToolError
from toolrunner.facts import Text
from toolrunner.tools.builtin.problems import refused
from toolrunner.tools.builtin.reading import Check, Piece, by_bytes, by_lines
from toolrunner.tools.builtin.roots import PathText
from toolrunner.tools.builtin.space import Space
from toolrunner.tools.builtin.walking import follow, open_file
from toolrunner.tools.context import ToolContext
from toolrunner.tools.decorator import tool
from toolrunner.tools.options import Resource, ResourceMode
from toolrunner.tools.reply import Reply
from toolrunner.tools.tool import Tool

MOST_LINES = 2_000
"""Lines of one result if nobody says otherwise; most source files are shorter."""

Unit = Literal["lines", "bytes"]


def read_file_tool(space: Space) -> Tool[..., Any]:
    """`read_file` for these roots."""

    @tool(
        read_only=True,
        idempotent=True,
        open_world=False,
        resources=lambda parsed: [Resource(space.roots.key(parsed["path"]), ResourceMode.READ)],
    )
    def read_file(  # noqa: D417 - the docstring is the model's, which never sees ctx
        ctx: ToolContext[Any],
        path: PathText,
        offset: Annotated[int | None, Field(ge=0)] = None,
        limit: Annotated[int | None, Field(ge=1)] = None,
        unit: Unit = "lines",
    ) -> Reply:
        """Read a UTF-8 text file, exactly as it is. Says when more of it follows and how to read on.

        Args:
            path: The file.
            offset: First line to read, from 1; with unit "bytes" the first byte, from 0. Default: the beginning.
            limit: How many lines (default 2000) or bytes to read at most.
            unit: "lines", or "bytes" for a file with very long lines.
        """
        with follow(space.roots, path) as place:
            shown = space.roots.shown(place.real)
            fd = open_file(space.roots, place)
            try:
                return _read(fd, shown, (offset, limit, unit), space.shown, ctx.signal.raise_if_aborted)
            except OSError as error:
                raise refused(shown, error) from error
            finally:
                os.close(fd)

    return read_file


def _read(fd: int, shown: str, wanted: tuple[int | None, int | None, Unit], most: int, check: Check) -> Reply:
    offset, limit, unit = wanted
    before = os.fstat(fd)
    if unit == "bytes":
        piece = by_bytes(fd, shown, offset or 0, min(limit or most, most), check)
    elif offset == 0:
        raise ToolError("offset is 0, but lines count from 1", kind="bad_offset")
    else:
        piece = by_lines(fd, shown, offset or 1, limit or MOST_LINES, most, check)
    after = os.fstat(fd)
    changed = (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)
    notes = [*_notes(piece, unit, after.st_size), *(["it was changed while it was read; read it again"] if changed else [])]
    note = f"[{shown}: {'; '.join(notes)}]" if notes else ""
    value: dict[str, JsonValue] = {
        "path": shown,
        "text": piece.text,
        "unit": unit,
        "first": piece.first,
        "last": piece.last,
        "next": piece.next,
        "total": piece.total,
        "size": after.st_size,
        "changed_meanwhile": changed,
    }
    return Reply(value, [Text(text) for text in (piece.text, note) if text])


def _notes(piece: Piece, unit: Unit, size: int) -> list[str]:
    if size == 0:
        return ["the file is empty"]
    if piece.cut_at is not None:
        how = f'read on with unit="bytes", offset={piece.cut_at}'
        return [f"line {piece.first} is too long to be shown whole, this is its beginning; {how}"]
    whole = f" of {piece.total}" if piece.total is not None else f" (the file has {size} bytes)"
    first_of_all = 0 if unit == "bytes" else 1
    if piece.next is None and piece.first == first_of_all:
        return []
    what = f"{unit} {piece.first} to {piece.last}{whole}"
    return [f"{what}; read on with offset={piece.next}" if piece.next is not None else f"{what}, the end of the file"]
