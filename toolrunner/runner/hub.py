"""Hub: takes every record of the runner, gives it to the journal, then to whoever listens.

State: the observers by run_id (a batch's own) and for all; changed by `listen` and `attach`. Observers are sync and ordered; what
one raises is logged and dropped, because watching must not change what is watched.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import final

from toolrunner.records import Journal, Observer, Record

_logger = logging.getLogger("toolrunner")


@final
class Hub:
    """One per runner; used on its loop."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        """Set once more at the most, before the first record: a session's journal is opened when the runner is entered."""
        self._all: tuple[Observer, ...] = ()
        self._by_run: dict[str, Observer] = {}

    def emit(self, *records: Record) -> Awaitable[None] | None:
        """Append to the journal first, so that nobody is shown what the journal refused; then show."""
        lasting = records if len(records) == 1 and not records[0].transient else [one for one in records if not one.transient]
        pending = self.journal.append(*lasting)
        if self._all or self._by_run:
            for record in records:
                self._show(record)
        return pending

    def listen(self, observer: Observer) -> Callable[[], None]:
        """Hear of every call of this runner; returns the way to stop."""
        self._all = (*self._all, observer)

        def stop() -> None:
            self._all = tuple(one for one in self._all if one is not observer)

        return stop

    def attach(self, run_id: str, observer: Observer) -> None:
        """Hear of one call, from its first record on."""
        self._by_run[run_id] = observer

    def adopt(self, run_id: str, parent_run_id: str) -> None:
        """A child call is heard of by whoever hears of its parent."""
        observer = self._by_run.get(parent_run_id)
        if observer is not None:
            self._by_run[run_id] = observer

    def detach(self, run_id: str) -> None:
        """No more will come of this call."""
        self._by_run.pop(run_id, None)

    def _show(self, record: Record) -> None:
        own = self._by_run.get(record.run_id)
        for observer in (*self._all, own) if own is not None else self._all:
            try:
                observer(record)
            except Exception:
                _logger.exception("an observer raised at %s", record.type)
