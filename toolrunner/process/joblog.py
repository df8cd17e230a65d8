"""What a job has printed: read from any offset, as often as anybody likes; the newest of each stream is kept. No I/O."""

from dataclasses import dataclass
from typing import final

LOG_LIMIT = 1 << 20
"""Bytes kept of each stream: a server's log of a day is no reason to fill the memory of its host."""


@final
@dataclass(frozen=True, slots=True)
class JobText:
    """A piece of a job's output. `next_offset` is where to read on; `skipped` bytes before it are kept no more.

    `eof`: nothing will follow; a job can be at the end of its output and still run.
    """

    text: str
    next_offset: int
    eof: bool
    skipped: int = 0


@final
class JobLog:
    """One stream. Offsets count bytes from its beginning."""

    def __init__(self, limit: int = LOG_LIMIT) -> None:
        self.total = 0
        self.ended = False
        self._limit = limit
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """One more chunk. Twice the limit is let grow before it is cut, so that cutting stays rare."""
        self.total += len(data)
        self._kept += data
        if len(self._kept) > 2 * self._limit:
            del self._kept[: len(self._kept) - self._limit]

    def read(self, offset: int, most: int) -> JobText:
        """At most `most` bytes from `offset` on, decoded; a character that has not come whole is left for the next time."""
        first = self.total - len(self._kept)
        start = min(max(offset, first), self.total)
        raw = bytes(self._kept[start - first : start - first + most])
        complete = self.ended and start + len(raw) == self.total
        if not complete:
            raw = raw[: len(raw) - _unfinished(raw)]
        reached = start + len(raw)
        return JobText(raw.decode("utf-8", "replace"), reached, self.ended and reached == self.total, max(0, first - offset))


def _unfinished(raw: bytes) -> int:
    """How many bytes at the end are the beginning of a UTF-8 character whose rest is missing (RFC 3629)."""
    for back in range(1, min(4, len(raw) + 1)):
        byte = raw[-back]
        if byte & 0xC0 == 0x80:  # noqa: PLR2004 - 10xxxxxx: inside a character
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1  # noqa: PLR2004
        # All of what was asked for may be one character that does not fit: better broken than never.
        return back if length > back and back < len(raw) else 0
    return 0
