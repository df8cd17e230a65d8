"""Journals that are not as quick and good as memory."""

from collections.abc import Generator
from typing import Any, final

from anyio.lowlevel import checkpoint

from toolrunner.memory import MemoryJournal
from toolrunner.records import Record


@final
class Flush:
    """What a slow journal gives to wait for. It need not be awaited."""

    def __init__(self, journal: "SlowJournal", records: tuple[Record, ...]) -> None:
        self._journal = journal
        self._records = records

    def __await__(self) -> Generator[Any, Any, None]:
        yield from checkpoint().__await__()
        self._journal.durable.update(id(record) for record in self._records)
        yield from checkpoint().__await__()


@final
class SlowJournal:
    """Each append takes two steps of the loop until it is durable. From its `fails_at`-th append on, it takes nothing more."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.kept = MemoryJournal()
        self.durable: set[int] = set()
        self._fails_at = fails_at
        self._appended = 0
        self._error: str | None = None

    def append(self, *records: Record) -> Flush:
        self._appended += 1
        if self._appended == self._fails_at:
            self._error = "no space left on device"
        if self._error is None:
            self.kept.append(*records)
        return Flush(self, records)

    @property
    def error(self) -> str | None:
        return self._error

    async def aclose(self) -> None:
        await checkpoint()
