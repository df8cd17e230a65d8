"""The draft file of an open turn: what a kill leaves of the reply that was being read. What it holds: `history.drafts`.

State: the last wish (where a draft comes from, or that there be none), and a thread of its own that makes the file like it; the
loop never waits for the disk here. Latest wins: what was wished in between is never written. `base` is the number of the
`request/sent` that the text answers, so records that come meanwhile (of a job, of a message that waits) make no draft stale.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import final

from toolrunner.history import Draft, UnreadableDraft, draft_from_json, draft_to_json
from toolrunner.records import AssistantAttempt, AssistantMessage, Record, RequestSent, TurnEnded

__all__ = ["DraftFile", "DraftWriter", "fitting"]

_logger = logging.getLogger("toolrunner")

CLOSE_WAIT = 5.0
"""Seconds that a close waits for the disk, on the loop: the draft is worth no more, and a disk may never answer."""

INTERVAL = 1.0
"""Seconds between two writings: what a kill may cost the reader, against a flush of the disk for every word."""


Source = Callable[[], Draft]
"""Says what a draft holds when it is written: putting a text together anew for each of its words would be quadratic."""


@final
class DraftFile:
    """Where the draft is. Read, written and taken away by whoever holds the session's lock, and by nobody else."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Draft | None:
        """The draft, or None. One that cannot be read is put aside and reported; the log is left alone. Raises nothing."""
        try:
            with os.fdopen(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                return draft_from_json(file.read())
        except FileNotFoundError:
            return None
        except (OSError, UnreadableDraft) as error:
            aside = self.path.with_name(f"{self.path.name}.unreadable")
            _logger.warning("%s: %s; it is kept as %s", self.path, error, aside.name)
            with contextlib.suppress(OSError):
                self.path.replace(aside)
            return None

    def write(self, draft: Draft) -> None:
        """Put it there in one step: a reader sees the old one or the new one. Raises OSError."""
        new = self.path.with_name(f"{self.path.name}.new")
        with contextlib.suppress(FileNotFoundError):
            new.unlink()  # of an owner that was killed
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(new, flags, 0o600), "wb") as file:
            file.write(draft_to_json(draft))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)
        self._flush_name()

    def remove(self) -> None:
        """Take it away. Raises OSError; that there is none is no error."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
            self._flush_name()

    def _flush_name(self) -> None:
        """A name is on disk only when its folder is (fsync(2))."""
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@final
class DraftWriter:
    """Makes the file follow what is wished. A draft that cannot be written is logged once; the turn goes on without."""

    def __init__(self, file: DraftFile, interval: float = INTERVAL) -> None:
        self._file, self._interval = file, interval
        self._changed = threading.Condition()
        self._wish: list[Source | None] = []
        """Empty: the file is as it was wished; else one entry, None: there is to be none."""
        self._closed = False
        self._failed = False
        self._thread = threading.Thread(target=self._live, name="toolrunner draft", daemon=True)
        self._thread.start()

    def put(self, source: Source | None) -> None:
        """Have the file hold what `source` says then, in the thread; or, None, be gone. Never blocks on the disk."""
        with self._changed:
            self._wish = [source]
            self._changed.notify()

    def close(self) -> None:
        """Write what is still wished, and end the thread. Blocks for `CLOSE_WAIT` at the most, then it is left and reported."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(CLOSE_WAIT)
        if self._thread.is_alive():
            _logger.warning("%s: the thread that writes it has not ended within %g s; it is left", self._file.path, CLOSE_WAIT)

    def _live(self) -> None:
        written = -self._interval
        while (wish := self._next(written)) is not None:
            written = time.monotonic()
            try:
                for source in wish:
                    if source is None:
                        self._file.remove()
                    else:
                        self._file.write(source())
            except OSError as error:
                if not self._failed:
                    _logger.warning("%s cannot be written: %s; a crash would lose the text of the reply", self._file.path, error)
                self._failed = True

    def _next(self, written: float) -> list[Source | None] | None:
        """Wait for a wish, and for its time; None: there will be no more."""
        with self._changed:
            while not self._closed:
                left = written + self._interval - time.monotonic()
                if self._wish and (left <= 0 or self._wish == [None]):  # nothing is gained by keeping what is to go
                    break
                self._changed.wait(left if self._wish else None)
            wish, self._wish = self._wish, []
            return wish if wish or not self._closed else None


def fitting(draft: Draft | None, records: Sequence[Record]) -> Draft | None:
    """The draft, as the repair of this log takes it, if it is of the request that the log leaves without an answer; else None."""
    sent: RequestSent | None = None
    for record in records:
        match record:
            case RequestSent():
                sent = record
            case AssistantMessage() | AssistantAttempt() | TurnEnded():
                sent = None
            case _:
                pass
    if draft is None or sent is None or (draft.turn_id, draft.base) != (sent.run_id, sent.seq):
        return None
    return replace(draft, base=records[-1].seq)
