"""One change of one file, as an effect: planned before, done in one rename, and recorded with what was there and what is.

No state. Nothing stops it half-way: the body's thread is not cancelled, and a kill leaves the old content or the new one.
"""

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from typing import final

from pydantic import JsonValue

from toolrunner.effects import Undo, Undoing
from toolrunner.errors import ToolError
from toolrunner.tools.builtin.atomic import NotFlushed, NotPut, put, remove, same
from toolrunner.tools.builtin.attempt import Attempt
from toolrunner.tools.builtin.folders import folder_of
from toolrunner.tools.builtin.problems import refused
from toolrunner.tools.builtin.reading import Check, chunks
from toolrunner.tools.builtin.roots import Roots, printable
from toolrunner.tools.builtin.walking import Place, follow, open_file, wrong_kind

KIND = "file_write"
"""The kind of effect that these changes are."""

MOST_KEPT = 1 << 24
"""Bytes of an old content that are kept in memory to undo a change; what was larger cannot be put back."""


@final
@dataclass(frozen=True, slots=True)
class Version:
    """What a file had at some moment."""

    sha256: str
    size: int


@final
@dataclass(frozen=True, slots=True)
class Old:
    """The file before the change. `data` is None when it was larger than `MOST_KEPT`."""

    found: os.stat_result
    version: Version
    data: bytes | None


def version_of(data: bytes) -> Version:
    """The version with this content."""
    return Version(hashlib.sha256(data).hexdigest(), len(data))


def old_at(roots: Roots, place: Place, check: Check) -> Old | None:
    """What is at a place now, None if nothing. Raises ToolError for what is no file that may be changed."""
    require_changeable(roots, place)
    if place.found is None:
        return None
    fd = open_file(roots, place)
    try:
        found = os.fstat(fd)
        digest, kept, size = hashlib.sha256(), bytearray(), 0
        for data in chunks(fd, check):
            digest.update(data)
            size += len(data)
            if size <= MOST_KEPT:
                kept += data
        if not same(found, os.fstat(fd)):
            raise ToolError(f"{roots.shown(place.real)} is being changed by somebody else; try again later", kind="changed")
        return Old(found, Version(digest.hexdigest(), size), bytes(kept) if size <= MOST_KEPT else None)
    except OSError as error:
        raise refused(roots.shown(place.real), error) from error
    finally:
        os.close(fd)


def require_changeable(roots: Roots, place: Place) -> None:
    """Refuse what may not be written. Raises ToolError."""
    shown = roots.shown(place.real)
    if not place.writable:
        raise ToolError(f"{shown} may be read and not written", kind="forbidden")
    if place.found is None:
        return
    if not stat.S_ISREG(place.found.st_mode):
        raise wrong_kind(roots, place, "a file")
    # A rename asks for rights in the folder only; somebody who took the right to write from the file meant it.
    if not place.found.st_mode & 0o222 or not os.access(place.name, os.W_OK, dir_fd=place.folder, effective_ids=True):
        mode = stat.S_IMODE(place.found.st_mode)
        raise ToolError(f"{shown} is read-only (mode {mode:04o}); change its mode first if it may be changed", kind="forbidden")


def change(attempt: Attempt, roots: Roots, place: Place, old: Old | None, data: bytes) -> dict[str, JsonValue]:
    """Put `data` in place, as an effect of the call. Returns what the receipt says.

    Raises:
        ToolError: nothing was changed, and why; or, of kind "not_flushed", it was and the disk did not confirm it.
    """
    shown = roots.shown(place.real)
    after = version_of(data)
    said: dict[str, JsonValue] = {
        "path": printable(place.real),
        "before": facts(old.version) if old is not None else None,
        "after": facts(after),
    }
    attempt.ctx.signal.raise_if_aborted()  # the last look: what is begun below is completed and recorded
    undo = undo_of(roots, place.real, old, after) if old is None or old.data is not None else None
    with folder_of(attempt, roots, place) as (folder, name), attempt.effect(KIND, printable(place.real), undo) as effect:
        try:
            put(name, folder, data, old.found if old is not None else None)
        except NotFlushed as error:
            raise ToolError(
                f"{shown} was written, but the disk did not confirm it: {error.strerror}", kind="not_flushed"
            ) from error
        except NotPut as error:
            effect.not_applied()
            raise ToolError(f"{shown} {error.message}", kind=error.kind) from error
        except OSError as error:
            effect.not_applied()
            raise refused(shown, error) from error
        effect.receipt = json.dumps(said, ensure_ascii=False)
    return said


def facts(version: Version) -> dict[str, JsonValue]:
    """A version as a receipt tells it."""
    return {"sha256": version.sha256, "size": version.size}


def undo_of(roots: Roots, real: str, old: Old | None, after: Version) -> Undo:
    """The way back: the old content, if the file still has what this change gave it. Safe to try whatever is known."""

    def undo(effect: Undoing) -> None:
        with follow(roots, real) as place:
            now = old_at(roots, place, lambda: None)
            version = now.version if now is not None else None
            if version == (old.version if old is not None else None):
                return  # it never happened, or was taken back before
            if now is None or version != after:
                effect.not_applied()
                raise ToolError(
                    f"{roots.shown(real)} was changed again since, so the old content was not put back", kind="changed"
                )
            try:
                if old is None:
                    remove(place.name, place.folder)
                else:
                    assert old.data is not None
                    put(place.name, place.folder, old.data, now.found)
            except NotFlushed:
                raise
            except (NotPut, OSError):
                effect.not_applied()
                raise

    return Undo(undo, idempotent=True, when_unknown=True)
