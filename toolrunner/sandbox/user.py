"""Whom a contained command runs as, when its host is root, and what that user can reach. Reads only."""

import os
from pathlib import PurePath

User = tuple[int, int] | None
"""Numbers of user and group to become, or None to stay."""

EXECUTE = 0o1


class CannotDrop(Exception):
    """Root has nobody to become."""


def whom(cwd: str) -> User:
    """The owner of the working directory, where the host is root. Raises CannotDrop.

    Root inside a namespace is still the owner of root's files outside, and of every switch of the kernel in /proc.
    """
    if os.geteuid() != 0:
        return None
    try:
        facts = os.stat(cwd)
    except OSError as error:
        raise CannotDrop(f"the working directory {cwd!r}: {error.strerror}") from error
    if facts.st_uid == 0:
        text = f"root cannot be contained, and the working directory {cwd!r} is root's; run as a plain user"
        raise CannotDrop(f"{text}, or give the folder to one (chown -R USER), whom the command then runs as")
    if not can_reach(cwd, (facts.st_uid, facts.st_gid)):
        raise CannotDrop(f"user {facts.st_uid}, to whom the working directory {cwd!r} belongs, cannot get there")
    return facts.st_uid, facts.st_gid


def can_reach(path: str, user: User) -> bool:
    """Whether a user may enter every folder above a path. Without one it is about this process."""
    if user is None:
        return os.access(os.path.dirname(path), os.X_OK)
    return all(_may_enter(str(folder), *user) for folder in PurePath(path).parents)


def _may_enter(folder: str, uid: int, gid: int) -> bool:
    try:
        facts = os.stat(folder)
    except OSError:
        return False
    if facts.st_uid == uid:
        return bool(facts.st_mode & EXECUTE << 6)
    if facts.st_gid == gid or _has_list(folder):
        return bool(facts.st_mode & (EXECUTE << 3 | EXECUTE))
    return bool(facts.st_mode & EXECUTE)


def _has_list(folder: str) -> bool:
    """Whether it has an access control list (acl(5)), which may let more in than its mode tells; it is in the group's bits."""
    try:
        return bool(os.getxattr(folder, "system.posix_acl_access"))
    except OSError:
        return False
