"""The tool `edit_file`: an exact replacement, refused when it is not clear which text is meant. No state."""

from dataclasses import dataclass
from typing import Annotated, Any, final

from pydantic import Field

from toolrunner.errors import ToolError
from toolrunner.tools.builtin.attempt import Attempt
from toolrunner.tools.builtin.changing import KIND, MOST_KEPT, change, old_at
from toolrunner.tools.builtin.reading import not_text
from toolrunner.tools.builtin.roots import PathText, Roots, printable
from toolrunner.tools.builtin.space import Space
from toolrunner.tools.builtin.walking import follow, missing
from toolrunner.tools.builtin.write_file import encoded, told
from toolrunner.tools.context import ToolContext
from toolrunner.tools.decorator import tool
from toolrunner.tools.options import Compensate
from toolrunner.tools.reply import Reply
from toolrunner.tools.tool import Tool

SHOWN_LINES = 8
"""Lines that a message names: whoever has more places than that needs another text, not a longer list."""


def edit_file_tool(space: Space) -> Tool[..., Any]:
    """`edit_file` for these roots."""

    @tool(
        destructive=True,
        open_world=False,
        parallel_safe=False,
        resources=lambda parsed: [space.roots.key(parsed["path"])],
        compensate=Compensate.ON_ABORT if space.undo_on_abort else None,
    )
    def edit_file(  # noqa: D417 - the docstring is the model's, which never sees ctx
        ctx: ToolContext[Any],
        path: PathText,
        old_text: Annotated[str, Field(min_length=1)],
        new_text: str,
        replace_all: bool = False,  # noqa: FBT002 - arguments are given by name
    ) -> Reply:
        """Replace a text in a UTF-8 file. The text must be in it exactly once, whitespace and line ends included.

        Args:
            path: The file.
            old_text: The text to replace, exactly as it is in the file.
            new_text: What to put there; empty to delete.
            replace_all: Replace every occurrence instead of the only one.
        """
        attempt = Attempt(ctx, KIND, printable(space.roots.absolute(path)))
        return attempt.run(
            lambda: _edit(attempt, space.roots, path, _Replacement(encoded(old_text), encoded(new_text), replace_all))
        )

    return edit_file


@final
@dataclass(frozen=True, slots=True)
class _Replacement:
    old: bytes
    new: bytes
    every: bool


def _edit(attempt: Attempt, roots: Roots, path: str, wanted: _Replacement) -> Reply:
    if wanted.old == wanted.new:
        raise ToolError("old_text and new_text are the same, so there is nothing to change", kind="no_change")
    with follow(roots, path) as place:
        shown = roots.shown(place.real)
        if place.found is None:
            raise missing(roots, place)
        old = old_at(roots, place, attempt.ctx.signal.raise_if_aborted)
        assert old is not None
        if old.data is None:
            raise ToolError(f"{shown} has {old.version.size} bytes; at most {MOST_KEPT} can be edited", kind="too_big")
        lines = _places(old.data, wanted.old, shown, replace_all=wanted.every)
        said = change(attempt, roots, place, old, old.data.replace(wanted.old, wanted.new))
    times = f"{len(lines)} occurrences" if len(lines) > 1 else "1 occurrence"
    return told(f"Replaced {times} in {shown} ({_at(lines)}).", {**said, "lines": lines[:SHOWN_LINES]}, old)


def _places(data: bytes, wanted: bytes, shown: str, *, replace_all: bool) -> list[Any]:
    """The lines of the occurrences to be replaced. Raises ToolError when it is not clear which those are."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise not_text(shown, f"byte {error.start} is 0x{data[error.start]:02x}", data) from None
    found = occurrences(data, wanted, overlapping=not replace_all)
    if not found:
        raise ToolError(f"old_text is not in {shown}{_hint(data, wanted)}", kind="not_found")
    lines = lines_of(data, found)
    if len(found) > 1 and not replace_all:
        advice = "give more of the lines around it, or set replace_all"
        raise ToolError(f"old_text occurs {len(found)} times in {shown} ({_at(lines)}); {advice}", kind="ambiguous")
    return lines


def occurrences(data: bytes, wanted: bytes, *, overlapping: bool) -> list[int]:
    """Where `wanted` begins. Overlapping ones count when one is meant: "aa" in "aaa" is not clear."""
    found = []
    at = data.find(wanted)
    while at >= 0:
        found.append(at)
        at = data.find(wanted, at + (1 if overlapping else len(wanted)))
    return found


def lines_of(data: bytes, offsets: list[int]) -> list[int]:
    """The line numbers, from 1, of rising byte offsets."""
    lines, line, seen = [], 1, 0
    for offset in offsets:
        line += data.count(b"\n", seen, offset)
        seen = offset
        lines.append(line)
    return lines


def _at(lines: list[int]) -> str:
    some = list(dict.fromkeys(lines))
    shown = ", ".join(map(str, some[:SHOWN_LINES])) + (f" and {len(some) - SHOWN_LINES} more" if len(some) > SHOWN_LINES else "")
    return f"line {shown}" if len(some) == 1 else f"lines {shown}"


def _hint(data: bytes, wanted: bytes) -> str:
    """What may be meant, if that can be told."""
    unix = wanted.replace(b"\r\n", b"\n")
    if b"\n" in unix and b"\r\n" in data and data.find(unix.replace(b"\n", b"\r\n")) >= 0:
        return "; its lines end in CR LF: send \\r\\n"
    if unix != wanted and data.find(unix) >= 0:
        return "; its lines end in LF alone: send \\n"
    first = next((line.split() for line in wanted.splitlines() if line.strip()), None)
    if first is None:
        return ""
    near = [number for number, line in enumerate(data.splitlines(), 1) if line.split() == first]
    if near:
        return f"; {_at(near)} differs from it in whitespace, or in what follows: read the file again and copy it exactly"
    return "; read the file again and copy it exactly"
