"""Where journals are: a folder per session below the state folder, or a file somebody named. No state.

The listing of the folders is the index; there is no other, so none can be wrong. Folders are 0700, files 0600: records hold
whatever tools were given and gave back.
"""

import os
import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import final

from toolrunner.errors import ConfigError, JournalFull, JournalReadOnly
from toolrunner.journal.failures import NO_ROOM

JOURNAL_NAME = "journal.db"
LOCK_NAME = "owner.lock"

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


@final
@dataclass(frozen=True, slots=True)
class Place:
    """The files of one journal. `session` is None for a file that was named directly."""

    path: Path
    session: str | None = None

    @property
    def lock(self) -> Path:
        """What its owner holds locked. Nothing but `ownership` opens it."""
        if self.path.name == JOURNAL_NAME:
            return self.path.with_name(LOCK_NAME)
        return self.path.with_name(f"{self.path.name}.{LOCK_NAME}")


def sessions_folder() -> Path:
    """The state folder's part of ours (XDG Base Directory: an unset, empty or relative XDG_STATE_HOME is ~/.local/state)."""
    home = Path(os.environ.get("XDG_STATE_HOME") or ".")
    base = home if home.is_absolute() else Path.home() / ".local" / "state"
    return base / "toolrunner" / "sessions"


def new_session() -> str:
    """A fresh id. Ids sort by the time they were made."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"


def is_session(name: str) -> bool:
    """Whether a session may be called so."""
    return _ID.fullmatch(name) is not None


def session_place(session: str) -> Place:
    """The files of a session. Raises `ConfigError` for a name that could lead out of the folder."""
    if not isinstance(session, str) or not is_session(session):
        raise ConfigError("session", session, "1 to 100 letters, digits, dots, dashes or underscores, no dot or dash in front")
    return Place(sessions_folder() / session / JOURNAL_NAME, session)


def named_place(path: str | os.PathLike[str]) -> Place:
    """The files of a journal that somebody named. A folder means the journal in it; one of a session is known as that."""
    whole = Path(path).expanduser().absolute()
    if whole.is_dir():
        whole /= JOURNAL_NAME
    ours = whole.name == JOURNAL_NAME and whole.parent.parent == sessions_folder()
    return Place(whole, whole.parent.name if ours else None)


def prepare(place: Place) -> None:
    """Make the folders of a session and the empty file, readable by nobody else. Raises `JournalReadOnly`, `JournalFull`."""
    try:
        if place.session is not None:
            # The mode of `makedirs` is for the last folder only.
            for folder in (*reversed(place.path.parent.parents), place.path.parent):
                if not folder.is_dir():
                    folder.mkdir(mode=0o700, exist_ok=True)
        _make_file(place.path)
    except OSError as error:
        text = f"{error.filename or place.path}: {error.strerror}"
        raise (JournalFull if error.errno in NO_ROOM else JournalReadOnly)(place.path, text) from error


def _make_file(path: Path) -> None:
    # Never opened by us once it is there: closing any descriptor of a file drops all POSIX locks that this process has on it
    # (fcntl(2)), SQLite's own of another connection among them.
    if path.exists():
        return
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    os.close(file)
    _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    """A new name is on disk only when its folder is (fsync(2))."""
    entry = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(entry)
    finally:
        os.close(entry)
