"""The sessions of this user: what is there, and which of it may go. No state: the listing of the folders is the index."""

import contextlib
import logging
import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import final

from toolrunner.errors import JournalError
from toolrunner.journal.doubts import in_doubt
from toolrunner.journal.ownership import OwnerLock, OwnerState, owner_of
from toolrunner.journal.places import JOURNAL_NAME, Place, is_session, sessions_folder
from toolrunner.journal.reader import JournalReader

_logger = logging.getLogger("toolrunner")

_LEAVING = ".leaving-"
"""How a folder is called while it is being deleted: no session begins with a dot."""


@final
@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One session's folder. `changed_at`: when something but its lock was written last. `size` in bytes, all its files."""

    name: str
    place: Place
    owner: OwnerState
    pid: int | None
    changed_at: datetime
    size: int

    @property
    def path(self) -> Path:
        """The database file."""
        return self.place.path


@final
@dataclass(frozen=True, slots=True)
class Retention:
    """Which sessions are kept: those that were written to within `age`, of them the newest, up to `size` bytes together.

    Only whole sessions go. One that has an owner stays, and one with a call whose effects are unknown and whose tool could tell.
    """

    age: timedelta = timedelta(days=30)
    size: int = 1024**3


def sessions(folder: Path | None = None) -> tuple[SessionInfo, ...]:
    """All sessions, the one that was written to last first. What is no session is passed over."""
    folders = list[Path]()
    with contextlib.suppress(OSError):
        folders = [one for one in (folder or sessions_folder()).iterdir() if is_session(one.name)]
    found = [info for one in folders if (info := _info(one)) is not None]
    return tuple(sorted(found, key=lambda one: (one.changed_at, one.name), reverse=True))


def _info(folder: Path) -> SessionInfo | None:
    place = Place(folder / JOURNAL_NAME, folder.name)
    size, changed = 0, 0.0
    try:
        if not place.path.is_file():
            return None
        for file in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                facts = file.stat(follow_symlinks=False)
                # Nothing is ever written to the lock, and taking it may make it.
                size, changed = size + facts.st_size, changed if file == place.lock else max(changed, facts.st_mtime)
    except OSError:
        return None
    owner, pid = owner_of(place)
    return SessionInfo(folder.name, place, owner, pid, datetime.fromtimestamp(changed, UTC), size)


def retire(retention: Retention, folder: Path | None = None, now: datetime | None = None) -> tuple[str, ...]:
    """Delete the sessions that `retention` lets go; returns their names. Raises nothing: what cannot be deleted stays."""
    root = folder or sessions_folder()
    oldest = (now or datetime.now(UTC)) - retention.age
    gone, total = list[str](), 0
    for left in root.glob(f"{_LEAVING}*"):  # by somebody who was killed meanwhile
        shutil.rmtree(left, ignore_errors=True)
    for one in sessions(root):
        total += one.size
        if (one.changed_at < oldest or total > retention.size) and _delete(one, root):
            gone.append(one.name)
            total -= one.size
    return tuple(gone)


def _delete(session: SessionInfo, root: Path) -> bool:
    if session.owner is not OwnerState.NONE:
        return False
    try:
        lock = OwnerLock.take(session.place)
    except JournalError:
        return False
    leaving = root / f"{_LEAVING}{session.name}-{os.getpid()}"
    try:
        now = _info(session.path.parent)
        # It may have had an owner since it was listed.
        if now is None or now.changed_at != session.changed_at or _holds_a_doubt(session.place):
            return False
        session.place.path.parent.rename(leaving)
    except OSError as error:
        _logger.warning("the session %s cannot be deleted: %s", session.name, error)
        return False
    finally:
        lock.release()
    shutil.rmtree(leaving, ignore_errors=True)
    return True


def _holds_a_doubt(place: Place) -> bool:
    """Whether something must be kept of it; one that cannot be read is kept too."""
    try:
        with JournalReader(place.path) as reader:
            return any(in_doubt(entry.record for entry in reader.of_run(run_id)) for run_id in reader.reconcilable())
    except JournalError:
        return True
