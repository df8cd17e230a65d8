"""The tool `search`. No state."""

import os
import stat
from itertools import groupby
from typing import Annotated, Any

import anyio.lowlevel
from pydantic import Field, JsonValue

from toolrunner.errors import ToolError
from toolrunner.facts import Text
from toolrunner.tools.builtin.finding import Found, Wanted, find
from toolrunner.tools.builtin.patterns import check_glob, check_pattern
from toolrunner.tools.builtin.reading import chunks
from toolrunner.tools.builtin.roots import PathText, Roots
from toolrunner.tools.builtin.space import Space
from toolrunner.tools.builtin.walking import follow, missing, open_file, wrong_kind
from toolrunner.tools.context import ToolContext
from toolrunner.tools.decorator import tool
from toolrunner.tools.reply import Reply
from toolrunner.tools.tool import Tool

SHOWN_MATCHES = 100
"""Matches of one result if nobody says otherwise."""

MOST_MATCHES = 1_000
"""And at most."""

SHOWN_OF_A_LINE = 300
"""Characters of a line that are shown: enough to see what it is about, and a minified file is one line."""


LOOKED_FOR_NUL = 1 << 20
"""Bytes of a file in which a NUL makes it a binary one, of which nothing is shown."""


def search_tool(space: Space) -> Tool[..., Any]:
    """`search` for these roots."""

    @tool(read_only=True, idempotent=True, open_world=False)
    async def search(  # noqa: D417, PLR0913, PLR0917 - the model never sees ctx; each parameter is one it looks for by name
        ctx: ToolContext[Any],
        pattern: Annotated[str, Field(min_length=1, max_length=1_000)],
        path: PathText = ".",
        glob: Annotated[str, Field(max_length=200)] = "",
        literal: bool = False,  # noqa: FBT002 - arguments are given by name
        ignore_case: bool = False,  # noqa: FBT002
        limit: Annotated[int, Field(ge=1, le=MOST_MATCHES)] = SHOWN_MATCHES,
    ) -> Reply:
        """Search the text files in a folder, line by line. Returns path:line: text, sorted by path.

        Binary files, symlinks and .git, .hg, .svn, node_modules, __pycache__ and .venv are left out; hidden files are not.

        Args:
            pattern: Regular expression, without look-around and back-references.
            path: Folder or file to search.
            glob: Names of files to search, such as *.py or *.{ts,tsx}. Default: all.
            literal: Take pattern as plain text.
            ignore_case: Whether case does not matter.
            limit: How many matches to show at most.
        """
        if "\n" in pattern or "\0" in pattern:
            raise ToolError("pattern holds a line break or NUL; the search looks at one line at a time", kind="bad_pattern")
        if not literal:
            check_pattern(pattern)
        check_glob(glob)
        folder, target = _target(space.roots, path)
        found = await find(ctx, space, Wanted(pattern, literal, ignore_case, glob), folder, target)
        lines, unseen = await _shown(ctx, space.roots, folder, found, limit)
        return _reply(lines, unseen, found, space.shown)

    return search


def _target(roots: Roots, path: str) -> tuple[str, str]:
    """The folder to search in, without symlinks, and what in it."""
    with follow(roots, path) as place:
        if place.found is None:
            raise missing(roots, place)
        if stat.S_ISDIR(place.found.st_mode):
            return place.real, ""
        if not stat.S_ISREG(place.found.st_mode):
            raise wrong_kind(roots, place, "a folder or a file")
        return os.path.split(place.real)


Lines = list[tuple[str, int, str]]


async def _shown(ctx: ToolContext[Any], roots: Roots, folder: str, found: Found, limit: int) -> tuple[Lines, int]:
    """The first lines with their text, and how many lines nobody looked at any more.

    Without those of files that are gone, or binary, or not inside: they are left out and not counted.
    """
    shown: Lines = []
    unseen = len(found.lines)
    for name, group in groupby(found.lines, key=lambda line: line[0]):
        if len(shown) == limit:
            break
        real = os.path.join(folder, name)
        every = [number for _, number in group]
        numbers = every[: limit - len(shown)]
        unseen -= len(every)
        try:
            texts = await _lines(ctx, roots, real, numbers)
        except (ToolError, OSError):
            continue
        shown += [(roots.shown(real), number, texts[number]) for number in numbers if number in texts]
        unseen += len(every) - len(numbers) if texts else 0
    return shown, unseen


async def _lines(ctx: ToolContext[Any], roots: Roots, path: str, numbers: list[int]) -> dict[int, str]:
    """The text of lines of one file, {} if it is a binary one. On the loop: the search has just read the same file."""
    with follow(roots, path) as place:
        fd = open_file(roots, place)
    try:
        found: dict[int, str] = {}
        wanted, line, start, read = set(numbers), 1, b"", 0
        for data in chunks(fd, ctx.signal.raise_if_aborted):
            await anyio.lowlevel.checkpoint()
            if b"\0" in data:
                return {}
            read += len(data)
            *ended, rest = (start + data).split(b"\n")
            for text in ended:
                if line in wanted:
                    found[line] = _text(text)
                line += 1
            # Of a line without an end only as much is kept as can be shown.
            start = rest[: 8 * SHOWN_OF_A_LINE]
            if read >= LOOKED_FOR_NUL and len(found) == len(wanted):
                break
        if line in wanted:
            found.setdefault(line, _text(start))
        return found
    finally:
        os.close(fd)


def _text(raw: bytes) -> str:
    text = raw[: 8 * SHOWN_OF_A_LINE].decode("utf-8", "replace").rstrip("\r")
    return text if len(text) <= SHOWN_OF_A_LINE else text[:SHOWN_OF_A_LINE] + " [...]"


def _reply(lines: Lines, unseen: int, found: Found, room: int) -> Reply:
    texts: list[str] = []
    for name, number, text in lines:
        one = f"{name}:{number}: {text}"
        room -= len(one.encode()) + 1
        if room < 0:
            break
        texts.append(one)
    more = unseen + len(lines) - len(texts)
    notes = [
        *([] if texts else ["no matches"]),
        *([f"{more} more matches are not shown; narrow pattern, path or glob"] if more else []),
        *([] if found.complete else [found.why]),
    ]
    matches: list[JsonValue] = [{"path": name, "line": number, "text": text} for name, number, text in lines[: len(texts)]]
    value: dict[str, JsonValue] = {"matches": matches, "more": more, "complete": found.complete, "why": found.why}
    note = f"[{'; '.join(notes)}]" if notes else ""
    return Reply(value, [Text(text) for text in ("\n".join(texts), note) if text])
