"""Who owns a journal: a POSIX lock on a file of its own, for as long as the owner's process lives.

Not flock: a forked child keeps that alive after its parent. A POSIX lock belongs to the process and ends with it, but also when
the process closes *any* descriptor of the file (fcntl(2), "Record locks"), so this module alone opens it, and never twice: what
this process owns is known from `_owned` and not by trying.
State: the locks that this process holds, changed under `_guard`; a forked child holds none.
"""

import fcntl
import os
import struct
import threading
from enum import StrEnum
from pathlib import Path
from typing import final

from toolrunner.errors import JournalFailed, JournalFull, JournalOwned, JournalReadOnly
from toolrunner.journal.failures import NO_ROOM
from toolrunner.journal.places import Place

_guard = threading.Lock()
_owned: dict[tuple[int, int], "OwnerLock"] = {}
"""Device and inode of each lock file held -> who holds it."""

_FLOCK = struct.Struct("hhqqi4x") if struct.calcsize("P") == 8 else None  # noqa: PLR2004
"""struct flock of 64-bit Linux (fcntl.h): type, whence, start, len, pid."""


class OwnerState(StrEnum):
    """Whether somebody owns a journal now."""

    ALIVE = "alive"
    NONE = "none"
    UNKNOWN = "unknown"


def _forget_in_child() -> None:
    # The descriptors stay open: closing them would be harmless for the parent's locks, and pointless. The guard may have been
    # held by another thread, which the child does not have.
    global _guard  # noqa: PLW0603
    _guard = threading.Lock()
    _owned.clear()


os.register_at_fork(after_in_child=_forget_in_child)


@final
class OwnerLock:
    """The lock, held from `take` to `release`."""

    def __init__(self, file: int, key: tuple[int, int]) -> None:
        self._file = file
        self._key = key

    @classmethod
    def take(cls, place: Place) -> "OwnerLock":
        """Become the owner, or raise `JournalOwned`; `JournalReadOnly` or `JournalFull` if the file cannot be made.

        `JournalFailed`: it was deleted meanwhile. (By retention; opened again it is a new one.)
        """
        with _guard:
            if _key(place.lock) in _owned:
                raise JournalOwned(place.path, os.getpid())
            try:
                file = os.open(place.lock, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            except OSError as error:
                kind = JournalFull if error.errno in NO_ROOM else JournalReadOnly
                raise kind(place.path, f"{place.lock}: {error.strerror}") from error
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = _holder(file)
                os.close(file)
                raise JournalOwned(place.path, holder or 0) from error
            facts = os.fstat(file)
            key = (facts.st_dev, facts.st_ino)
            if _key(place.lock) != key:
                os.close(file)
                raise JournalFailed(place.path, "it was deleted while it was opened")
            lock = _owned[key] = cls(file, key)
        return lock

    def release(self) -> None:
        """Let go, once: a later owner's lock is on the same file. In a forked child, which has no lock, nothing."""
        with _guard:
            if _owned.get(self._key) is self:
                del _owned[self._key]
                os.close(self._file)


def owner_of(place: Place) -> tuple[OwnerState, int | None]:
    """Whether the journal has an owner, and its pid where that can be told. Takes no lock, so it gets in no owner's way."""
    with _guard:
        key = _key(place.lock)
        if key is None:
            return OwnerState.NONE, None
        if key in _owned:
            return OwnerState.ALIVE, os.getpid()
        try:
            file = os.open(place.lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return OwnerState.UNKNOWN, None
        try:
            pid = _holder(file)
        finally:
            os.close(file)  # drops locks of this process only, and it has none on this file
    if pid is None:
        return OwnerState.UNKNOWN, None
    return (OwnerState.ALIVE, pid if pid > 0 else None) if pid else (OwnerState.NONE, None)


def _key(lock: Path) -> tuple[int, int] | None:
    try:
        facts = lock.stat(follow_symlinks=False)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def _holder(file: int) -> int | None:
    """The pid that has the lock, 0 = nobody, -1 = somebody in a pid namespace that is not ours, None = nobody says."""
    if _FLOCK is None:
        return None
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))
    except OSError:
        return None
    return 0 if kind == fcntl.F_UNLCK else (pid or -1)
