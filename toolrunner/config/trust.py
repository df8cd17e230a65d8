"""Reads the bytes of a file, if nobody but this user and root can change them. No state."""

import os
import stat
from pathlib import Path

from toolrunner.config.documents import Found, Kind, Origin

SIZE_LIMIT = 1 << 20
"""Bytes of one file. People write these by hand; a larger one is a mistake, or somebody's attack on our memory."""

_ADVICE = "chmod go-w and chown it, or keep it elsewhere"


def content(kind: Kind, found: Found) -> bytes:
    """The bytes of a file that may be trusted. Looked at through the descriptor that is read: a swap changes nothing."""
    try:
        fd = os.open(found.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))  # a FIFO would block
    except OSError as error:
        raise kind.error(f"{kind.noun} {found.path}: {error.strerror}") from error
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            raise kind.error(f"{kind.noun} {found.path}: it is no regular file")
        # Whoever can write what is shipped can write our code as well, so the look would prove nothing there.
        if found.origin is not Origin.SHIPPED and os.name == "posix":
            owners = _owners(found)
            _check_owner(kind, found.path, facts, owners)
            # Resolved, since a link's folder says nothing about who can replace what it leads to.
            folder = found.path.resolve().parent
            _check_owner(kind, folder, folder.stat(), owners)
        whole = b""
        while len(whole) <= SIZE_LIMIT and (part := os.read(fd, SIZE_LIMIT + 1 - len(whole))):
            whole += part
    finally:
        os.close(fd)
    if len(whole) > SIZE_LIMIT:
        raise kind.error(f"{kind.noun} {found.path}: it is larger than {SIZE_LIMIT:,} bytes")
    return whole


def _owners(found: Found) -> tuple[int, ...]:
    """Who may have written it. A workspace's own file can only take away, so whoever owns the workspace may too."""
    own = (0, os.geteuid())
    return (*own, found.path.parent.parent.stat().st_uid) if found.origin is Origin.WORKSPACE else own


def _check_owner(kind: Kind, path: Path, facts: os.stat_result, owners: tuple[int, ...]) -> None:
    if facts.st_uid not in owners:
        raise kind.error(f"{kind.noun} {path}: it belongs to user {facts.st_uid}, who could change it; {_ADVICE}")
    if facts.st_mode & 0o022 and not (stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX):
        raise kind.error(f"{kind.noun} {path}: others may write it (mode {stat.S_IMODE(facts.st_mode):o}); {_ADVICE}")
