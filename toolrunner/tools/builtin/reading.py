"""Reading text out of a file: by lines or by bytes, bounded, stopped between two chunks. No state.

`check` is called before each chunk and raises when the call is to stop: a file of any size ends at once.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

from toolrunner.errors import ToolError

CHUNK = 1 << 18
"""Bytes read at a time: a few hundred microseconds from the page cache, so a stop is heard at once."""

COUNTED = 1 << 24
"""Files up to so many bytes are read to their end for the sake of the number of their lines."""

LOOKED_THROUGH = 1 << 30
"""Bytes that are read through to reach a line; whoever wants a line behind that reads by bytes."""

Check = Callable[[], object]


@final
@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a file. `first` and `next` count lines from 1, or bytes from 0; `next` is None at the end of the file.

    `total` is the number of lines or bytes, None if nobody counted. `cut_at` is the byte to go on from by bytes, when a single
    line was longer than what may be shown.
    """

    text: str
    first: int
    last: int
    next: int | None
    total: int | None
    cut_at: int | None = None


def chunks(fd: int, check: Check, start: int = 0) -> Iterator[bytes]:
    """The file from byte `start` on."""
    position = start
    while True:
        check()
        data = os.pread(fd, CHUNK, position)
        if not data:
            return
        position += len(data)
        yield data


def whole(fd: int, limit: int, check: Check) -> bytes | None:
    """All of a file, or None if it has more than `limit` bytes."""
    found = bytearray()
    for data in chunks(fd, check):
        found += data
        if len(found) > limit:
            return None
    return bytes(found)


def by_bytes(fd: int, shown: str, offset: int, most: int, check: Check) -> Piece:
    """At most `most` bytes from byte `offset` on. A character that the borders would cut is left to the neighbouring piece.

    Raises:
        ToolError: it is no UTF-8 text.
    """
    check()
    size = os.fstat(fd).st_size
    raw = os.pread(fd, most, offset)
    start = 0
    while start < min(3, len(raw)) and raw[start] & 0xC0 == 0x80 and offset:  # noqa: PLR2004 - 10xxxxxx: inside a character
        start += 1
    end = offset + len(raw)
    body = raw[start:]
    text = _decoded(body if end >= size else _whole_characters(body), shown, offset + start)
    reached = offset + start + len(text.encode())
    return Piece(text, offset + start, reached, reached if reached < size else None, size)


def by_lines(fd: int, shown: str, first: int, count: int, most: int, check: Check) -> Piece:
    """At most `count` lines from line `first` on, and at most `most` bytes.

    Raises:
        ToolError: it is no UTF-8 text, or there are fewer lines.
    """
    size = os.fstat(fd).st_size
    start, skipped = _line_start(fd, shown, first, check)
    if start is None:
        if first == 1:
            return Piece("", 1, 0, None, 0)
        lines = "1 line" if skipped == 1 else f"{skipped} lines"
        raise ToolError(f"{shown} has {lines}, so there is no line {first}", kind="bad_offset")
    raw, more = _lines(fd, start, count, most, check)
    kept = raw if len(raw) <= most else raw[: raw.rfind(b"\n", 0, most) + 1]
    if not kept:  # the first line alone is too long
        text = _decoded(_whole_characters(raw[:most]), shown, start)
        return Piece(text, first, first, first, None, cut_at=start + len(text.encode()))
    shown_lines = kept.count(b"\n") + (not kept.endswith(b"\n"))
    text = _decoded(kept, shown, start)
    ends = len(kept) == len(raw) and not more
    last = first + shown_lines - 1
    total = last if ends else _total(fd, size, start + len(kept), last, check)
    return Piece(text, first, last, None if ends else last + 1, total)


def _line_start(fd: int, shown: str, line: int, check: Check) -> tuple[int | None, int]:
    """The byte at which a line begins; None and the number of lines if there are fewer."""
    to_skip, position, last = line - 1, 0, b""
    for data in chunks(fd, check):
        found = data.count(b"\n") if to_skip else 0
        if found < to_skip or not to_skip:
            if not to_skip:
                return position, line - 1
            to_skip, position, last = to_skip - found, position + len(data), data
            if position > LOOKED_THROUGH:
                raise ToolError(f"line {line} of {shown} lies behind {LOOKED_THROUGH} bytes; read it by bytes", kind="too_big")
            continue
        at = -1
        for _ in range(to_skip):
            at = data.find(b"\n", at + 1)
        if at + 1 < len(data) or os.pread(fd, 1, position + at + 1):
            return position + at + 1, line - 1
        return None, line - 1
    return None, line - 1 - to_skip + (bool(last) and not last.endswith(b"\n"))


def _lines(fd: int, start: int, count: int, most: int, check: Check) -> tuple[bytes, bool]:
    """So many lines, or more than `most` bytes of them, and whether more follows."""
    found, lines = bytearray(), 0
    for data in chunks(fd, check, start):
        at = 0
        while lines < count and (end := data.find(b"\n", at)) >= 0:
            lines, at = lines + 1, end + 1
        found += data[:at] if lines == count else data
        if lines == count:
            return bytes(found), at < len(data) or bool(os.pread(fd, 1, start + len(found)))
        if len(found) > most:
            return bytes(found), True
    return bytes(found), False


def _total(fd: int, size: int, start: int, lines: int, check: Check) -> int | None:
    if size > COUNTED:
        return None
    last = b"\n"
    for data in chunks(fd, check, start):
        lines += data.count(b"\n")
        last = data
    return lines + (not last.endswith(b"\n"))


def _whole_characters(raw: bytes) -> bytes:
    """Without the beginning of a character whose rest is missing (RFC 3629: at most 3 bytes)."""
    for back in range(1, min(4, len(raw) + 1)):
        byte = raw[-back]
        if byte & 0xC0 == 0x80:  # noqa: PLR2004 - 10xxxxxx: inside a character
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1  # noqa: PLR2004
        return raw[:-back] if length > back else raw
    return raw


def _decoded(raw: bytes, shown: str, start: int) -> str:
    if b"\0" in raw:
        raise not_text(shown, f"byte {start + raw.index(0)} is a NUL", raw)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise not_text(shown, f"byte {start + error.start} is 0x{raw[error.start]:02x}", raw) from None


def not_text(shown: str, why: str, raw: bytes) -> ToolError:
    """What is no UTF-8 text is not guessed at: what a model edits must be what is in the file."""
    known = next((name for mark, name in _MARKS if raw.startswith(mark)), None)
    what = f"it looks like {known}" if known else why
    return ToolError(f"{shown} is not UTF-8 text ({what}); use the shell for a file like this", kind="not_text")


_MARKS = (
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"\x7fELF", "a program"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "data packed by gzip"),
)
