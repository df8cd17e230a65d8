"""The tool `write_file`. No state."""

import os
from typing import Any

from pydantic import JsonValue

from toolrunner.errors import ToolError
from toolrunner.facts import Text
from toolrunner.tools.builtin.attempt import Attempt
from toolrunner.tools.builtin.changing import KIND, Old, change, old_at
from toolrunner.tools.builtin.roots import PathText, Roots, printable
from toolrunner.tools.builtin.space import Space
from toolrunner.tools.builtin.walking import follow
from toolrunner.tools.context import ToolContext
from toolrunner.tools.decorator import tool
from toolrunner.tools.options import Compensate
from toolrunner.tools.reply import Reply
from toolrunner.tools.tool import Tool


def write_file_tool(space: Space) -> Tool[..., Any]:
    """`write_file` for these roots."""

    # Exclusive in its batch, so that what the model wrote first is there first; its lock orders it with other batches.
    @tool(
        destructive=True,
        idempotent=True,
        open_world=False,
        parallel_safe=False,
        resources=lambda parsed: [space.roots.key(parsed["path"])],
        compensate=Compensate.ON_ABORT if space.undo_on_abort else None,
    )
    def write_file(ctx: ToolContext[Any], path: PathText, content: str) -> Reply:  # noqa: D417 - the model never sees ctx
        """Write a text file in UTF-8: make it, or replace all of it. Missing folders are made. To change a part use edit_file.

        Args:
            path: The file.
            content: All that is to be in it.
        """
        attempt = Attempt(ctx, KIND, printable(space.roots.absolute(path)))
        return attempt.run(lambda: _write(attempt, space.roots, path, content))

    return write_file


def _write(attempt: Attempt, roots: Roots, path: str, content: str) -> Reply:
    data = encoded(content)
    with follow(roots, path) as place:
        old = old_at(roots, place, attempt.ctx.signal.raise_if_aborted)
        said = change(attempt, roots, place, old, data)
    what = "Made" if old is None else "Replaced"
    return told(f"{what} {roots.shown(place.real)} ({len(data)} bytes).", said, old)


def encoded(text: str) -> bytes:
    """A model's text as it goes into a file. Raises ToolError for what UTF-8 cannot say."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(f"character {error.start} of the text is a lone surrogate, which no UTF-8 file can hold") from None


def told(sentence: str, said: dict[str, JsonValue], old: Old | None) -> Reply:
    """The reply about a change, with what changed beside the content."""
    notes = []
    if old is not None and old.found.st_nlink > 1:
        others = old.found.st_nlink - 1
        names = "another name (a hard link), which keeps" if others == 1 else f"{others} other names (hard links), which keep"
        notes.append(f"The file had {names} the old content.")
    if old is not None and os.geteuid() != 0 and old.found.st_uid != os.geteuid():
        notes.append("It belonged to another user and belongs to this program's user now.")
    return Reply(said, [Text(" ".join([sentence, *notes]))])
