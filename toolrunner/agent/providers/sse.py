"""Server-sent events as bytes -> the JSON objects in them (WHATWG HTML, 9.2 Server-sent events). Pure.

State: one stream's bytes that are no whole event yet. Only `data` is read: every provider repeats the event's name inside, or has
none. `[DONE]`, which some send last, is no JSON and says nothing.
"""

import json
from collections.abc import Iterator
from typing import Any, final

from toolrunner.errors import ToolrunnerError

__all__ = ["EventStream", "MalformedEvent"]

DONE = "[DONE]"

_SHOWN = 200
"""Characters of a bad event that are told."""


@final
class MalformedEvent(ToolrunnerError, ValueError):
    """What came is no JSON object: the connection was mixed up with another, or a proxy had its say."""

    def __init__(self, data: str) -> None:
        super().__init__(f"an event of the stream is no JSON object: {data[:_SHOWN]!r}")


@final
class EventStream:
    """One response's."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """The events that end in this chunk, in order. Raises `MalformedEvent`."""
        # A line ends with CR LF, LF or CR. A CR at the very end may be half of a CR LF, so it waits.
        text = self._rest + chunk
        held = text.endswith(b"\r")
        lines = _lines(text[:-1] if held else text)
        self._rest = lines.pop() + (b"\r" if held else b"")
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" ").decode(errors="replace"))
            elif not line and (data := self._take()):
                yield _object(data)

    def _take(self) -> str:
        data, self._data = "\n".join(self._data), []
        return "" if data.strip() == DONE else data


def _lines(text: bytes) -> list[bytes]:
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")


def _object(data: str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError:
        raise MalformedEvent(data) from None
    if not isinstance(value, dict):
        raise MalformedEvent(data)
    return value
