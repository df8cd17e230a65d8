"""What is in a layer: every path that differs from the lower folder, exactly. Reads only.

overlayfs (the kernel's Documentation/filesystems/overlayfs.rst): a deleted name is a character device 0:0 in the upper layer, or
an empty file with the attribute `whiteout`; a replaced folder has the attribute `opaque`; what was copied up has `origin`.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from toolrunner.facts import ChangeKind
from toolrunner.sandbox.overlay.layer import Layer

BLOCK = 1 << 16


@final
@dataclass(frozen=True, slots=True)
class LayerChange:
    """One path below the lower folder, `path` relative to it. `is_copy`: what was changed came from the lower folder."""

    path: str
    kind: ChangeKind
    is_folder: bool = False
    is_copy: bool = False


def changes(layer: Layer) -> tuple[LayerChange, ...]:
    """All of them, folders before what is in them."""
    return tuple(_folder(layer, "", is_fresh=False))


def _folder(layer: Layer, name: str, *, is_fresh: bool) -> Iterator[LayerChange]:
    """`is_fresh`: nothing of the lower folder shows through here."""
    upper, lower = os.path.join(layer.upper, name), os.path.join(layer.lower, name)
    names = sorted(os.listdir(upper))
    for each in names:
        yield from _entry(layer, os.path.join(name, each), hides_lower=is_fresh)
    if is_fresh and os.path.isdir(lower) and not os.path.islink(lower):
        for each in sorted(set(os.listdir(lower)) - set(names)):
            path = os.path.join(lower, each)
            yield LayerChange(os.path.join(name, each), ChangeKind.DELETED, os.path.isdir(path) and not os.path.islink(path))


def _entry(layer: Layer, name: str, *, hides_lower: bool) -> Iterator[LayerChange]:
    path = os.path.join(layer.upper, name)
    facts, below = os.lstat(path), _lstat(os.path.join(layer.lower, name))
    if _is_whiteout(path, facts):
        if below is not None:
            yield LayerChange(name, ChangeKind.DELETED, stat.S_ISDIR(below.st_mode))
        return
    copied = _has(path, facts, "origin")
    if stat.S_ISDIR(facts.st_mode):
        replaces = hides_lower or _has(path, facts, "opaque")
        if below is None or not stat.S_ISDIR(below.st_mode):
            yield LayerChange(name, ChangeKind.CREATED if below is None else ChangeKind.MODIFIED, is_folder=True, is_copy=copied)
        elif facts.st_mode != below.st_mode:
            yield LayerChange(name, ChangeKind.MODIFIED, is_folder=True, is_copy=True)
        yield from _folder(layer, name, is_fresh=replaces)
    elif below is None:
        yield LayerChange(name, ChangeKind.CREATED, is_copy=copied)
    elif not _is_same(path, os.path.join(layer.lower, name), facts, below):
        yield LayerChange(name, ChangeKind.MODIFIED, is_copy=copied)


def _is_whiteout(path: str, facts: os.stat_result) -> bool:
    if stat.S_ISCHR(facts.st_mode):
        return facts.st_rdev == 0
    return stat.S_ISREG(facts.st_mode) and facts.st_size == 0 and _has(path, facts, "whiteout")


def _has(path: str, facts: os.stat_result, name: str) -> bool:
    if not (stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode)):  # only these can have attributes of a user's
        return False
    try:
        os.getxattr(path, f"user.overlay.{name}", follow_symlinks=False)
    except OSError:
        return False
    return True


def _is_same(upper: str, lower: str, above: os.stat_result, below: os.stat_result) -> bool:
    """Opened for writing and left alone, a file is copied up all the same. Times can be set, so contents are compared."""
    if above.st_mode != below.st_mode or above.st_size != below.st_size:
        return False
    if stat.S_ISLNK(above.st_mode):
        return os.readlink(upper) == os.readlink(lower)
    if not stat.S_ISREG(above.st_mode) or above.st_mtime_ns != below.st_mtime_ns:
        return False
    try:
        with open(_fd(upper), "rb") as one, open(_fd(lower), "rb") as other:
            while block := one.read(BLOCK):
                if block != other.read(BLOCK):
                    return False
            return not other.read(1)
    except OSError:
        return False


def _fd(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
