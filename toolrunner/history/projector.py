"""A log projected while it grows: what a request has carried is written once and kept. Pure but for its own state, one log's.

A new record costs the same after ten thousand as after ten; a request costs what is new in it, and a list of the rest.
"""

from dataclasses import replace
from typing import final

from toolrunner.history.atoms import joined, take_apart
from toolrunner.history.entries import History
from toolrunner.history.fold import Fold
from toolrunner.history.projection import unjoined
from toolrunner.history.shapes import shape_of
from toolrunner.records import Record
from toolrunner.wire import Item

__all__ = ["Projector"]


@final
class Projector:
    """Takes records in journal order; `messages()` is what the next request carries. Same as `project(fold(records), …)`.

    Raises ConfigError: the provider is unknown.
    """

    def __init__(self, provider: str, model: str | None = None) -> None:
        self._shape = shape_of(provider)
        self._model = model
        self._fold = Fold()
        self._kept: list[Item] = []
        """The messages of the first `_done` entries, neighbours joined. Never changed: they were handed out."""
        self._done = 0
        self._compactions = 0

    def add(self, record: Record) -> None:
        """Take the next record."""
        self._fold.add(record)

    def messages(self) -> list[Item]:
        """What the next request carries; a list of its own. Raises Unanswered: a call has no result yet."""
        if self._compactions != self._fold.compactions:
            self._kept, self._done, self._compactions = [], 0, self._fold.compactions
        new = self._fold.history(self._done)
        fresh = self._fold.frozen - self._done
        if fresh > 0:
            self._kept = self._with(unjoined(self._shape, _part(new, 0, fresh), self._model))
            self._done = self._fold.frozen
        return self._with(unjoined(self._shape, _part(new, fresh, None), self._model))

    def _with(self, more: list[Item]) -> list[Item]:
        """The kept messages and more; only the last of them can grow."""
        last = self._kept[-1:]
        return [*self._kept[:-1], *joined(self._shape, take_apart(self._shape, [*last, *more]))]


def _part(history: History, first: int, end: int | None) -> History:
    return replace(history, entries=history.entries[max(first, 0) : end])
