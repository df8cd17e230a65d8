"""The in-memory journal: the library's default. Everything it took is known at once and gone with the process."""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import final

from toolrunner.records import Record

KEPT_RECORDS = 100_000
"""Older records are dropped, so that a runner that lives for weeks does not grow. Nothing is ever replayed from them."""


@final
class MemoryJournal:
    """State: the records in order, written by `append` alone. Transient records are not kept."""

    def __init__(self, kept: int = KEPT_RECORDS) -> None:
        self._records: deque[Record] = deque(maxlen=kept)
        self._taken = 0
        """How many records were ever taken; the last one's `seq`."""

    def append(self, *records: Record) -> None:
        """Take the records; they are as durable as memory gets, so there is nothing to wait for."""
        for record in records:
            if not record.transient:
                self._taken += 1
                self._records.append(record)

    @property
    def error(self) -> str | None:
        """Memory does not fail."""
        return None

    def __iter__(self) -> Iterator[Record]:
        """The records that are kept, numbered. (Not when they come in: most are never read.)"""
        kept = tuple(self._records)
        first = self._taken - len(kept) + 1
        return (replace(record, seq=first + index) for index, record in enumerate(kept))

    async def aclose(self) -> None:
        """Nothing is pending, ever."""
