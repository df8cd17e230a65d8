"""The draft of a turn that is under way: what a crash may leave of it. Pure; the file is its writer's.

The protocol, for whoever holds the session's lock and for nobody else: written when a turn opens, rewritten at most once a second
while text streams, taken away only after the turn's last records are on disk. At load: fold, save, then take it away. A draft
that cannot be read is put aside, and the history stays as it is. It holds text only: unsigned thoughts and unfinished calls
could not be sent again.
"""

import json
from dataclasses import asdict, dataclass
from functools import cache
from typing import final

from pydantic import TypeAdapter, ValidationError

from toolrunner.errors import ToolrunnerError

MAX_BYTES = 1 << 20
"""More text than any model writes in one response; a draft is rewritten once a second."""


class UnreadableDraft(ToolrunnerError, ValueError):
    """A draft that is no draft: torn, or written by something else. The history it lies beside is left alone."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the draft cannot be read: {why}")


@final
@dataclass(frozen=True, slots=True)
class Draft:
    """A turn, where its response begins, and the text that was streamed of it. `base`: how much history it continues."""

    turn_id: str
    base: int
    text: str = ""
    response: str = ""

    def with_text(self, text: str) -> "Draft":
        """The same draft with as much of this text as it may hold, cut between two characters."""
        return Draft(self.turn_id, self.base, capped(text), self.response)


def capped(text: str) -> str:
    """As much of the beginning of a text as has room in MAX_BYTES of UTF-8; no character is torn."""
    if len(text) * 4 <= MAX_BYTES:
        return text
    return text.encode(errors="replace")[:MAX_BYTES].decode(errors="ignore")


def draft_to_json(draft: Draft) -> bytes:
    """The file's content."""
    return json.dumps(asdict(draft), ensure_ascii=False).encode(errors="replace")


@cache
def _reader() -> TypeAdapter[Draft]:
    """Built at the first draft: there is one after a crash only."""
    return TypeAdapter(Draft)


def draft_from_json(content: bytes) -> Draft:
    """Read a file's content. Raises UnreadableDraft."""
    try:
        return _reader().validate_json(content, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UnreadableDraft(f"{where}: {first['msg']}" if where else str(first["msg"])) from None


def draft_fits(draft: Draft, turn_id: str, end: int) -> bool:
    """Whether a draft is of this open turn and continues exactly this log; a stale one contributes no text."""
    return draft.turn_id == turn_id and draft.base == end
