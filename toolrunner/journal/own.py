"""Which files are the journals' own: nobody's tool may read or replace them. No state but what `sqlite` registers here.

Closing any descriptor of a file drops all POSIX locks that this process has on it (fcntl(2)), so a mere read of a lock file or a
database of this process would let a second owner in; and a file put in the place of one would be taken for it by the next owner.
"""

import os
import weakref
from pathlib import Path
from typing import Protocol

from toolrunner.journal.places import LOCK_NAME, Place, sessions_folder
from toolrunner.journal.schema import APPLICATION_ID

_SIDES = ("-wal", "-shm", "-journal")
"""Files that SQLite makes next to a database (https://www.sqlite.org/tempfiles.html)."""

_MAGIC = b"SQLite format 3\0"
_ID_AT = 68
"""Where a database says whose it is (https://www.sqlite.org/fileformat2.html, The Database Header)."""


class Placed(Protocol):
    """A journal that this process opened as its owner."""

    @property
    def place(self) -> Place: ...


living: "weakref.WeakSet[Placed]" = weakref.WeakSet()


def is_own(real: str, found: os.stat_result | None) -> bool:
    """Whether an absolute path without symlinks is one that a journal lives at, by its name or because it is the same file.

    Opens nothing. Journals of other programs are told by `is_journal`, which needs an open file.
    """
    name = Path(real).name
    if name == LOCK_NAME or name.endswith(f".{LOCK_NAME}"):
        return True
    if (real + "/").startswith(os.path.realpath(sessions_folder()) + "/"):
        return True
    return any(_is_at(real, found, path) for one in living for path in _files(one.place))


def is_journal(fd: int) -> bool:
    """Whether an open regular file is the database of a journal. Its reading place is not moved."""
    try:
        head = os.pread(fd, _ID_AT + 4, 0)
    except OSError:  # whoever reads it next finds the same
        return False
    return head.startswith(_MAGIC) and head[_ID_AT:] == APPLICATION_ID.to_bytes(4)


def _files(place: Place) -> list[Path]:
    return [place.path, place.lock, *(place.path.with_name(place.path.name + side) for side in _SIDES)]


def _is_at(real: str, found: os.stat_result | None, path: Path) -> bool:
    if real == os.path.realpath(path):
        return True
    try:
        return found is not None and os.path.samestat(found, path.stat())  # a hard link, or another spelling of its name
    except OSError:
        return False
