"""EventBuffer: records between a batch and the one reader of its events, bounded, so that a slow reader holds nothing up.

State: the queue, filled by `put` on the loop and emptied by the reader. Only transient records are ever left out, and counted.
"""

from collections import deque
from dataclasses import replace
from typing import Self, final

import anyio

from toolrunner.records import Output, Record

BUFFERED_EVENTS = 10_000
"""Events kept for a slow reader of `events()`; beyond that transient ones are dropped, others never."""

BUFFERED_TEXT = 1 << 20
"""Characters of live output kept for that reader: a command can write gigabytes while nobody reads."""


@final
class EventBuffer:
    """One batch's records for one reader, who may leave at any time: an iterator of its own, with nothing to close."""

    def __init__(self, *, is_read: bool = True) -> None:
        self.is_read = is_read
        """Whether there will be a reader. Without one nothing is put here."""
        self._queue: deque[Record] = deque()
        self._changed = anyio.Event()
        self._closed = False
        self._text = 0
        """Characters of output in the queue."""
        self._left_out = 0
        """Chunks of output dropped since the last one that was kept, which the next one tells."""
        self.dropped = 0

    def put(self, record: Record) -> None:
        """Never blocks: an observer must not hold a call up."""
        if record.transient and len(self._queue) >= BUFFERED_EVENTS:
            self.dropped += 1
            return
        if isinstance(record, Output):
            if self._text and self._text + len(record.text) > BUFFERED_TEXT:
                self.dropped += 1
                self._left_out += 1
                return
            self._text += len(record.text)
            if self._left_out:
                record, self._left_out = replace(record, dropped=record.dropped + self._left_out), 0
        self._queue.append(record)
        self._wake()

    def close(self) -> None:
        """No more will come."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        while not self._queue:
            if self._closed:
                raise StopAsyncIteration
            self._changed = anyio.Event()
            await self._changed.wait()
        record = self._queue.popleft()
        if isinstance(record, Output):
            self._text -= len(record.text)
        return record
