"""Writes a report file: whole or not at all. No state."""

import os
import stat
from pathlib import Path
from typing import final
from uuid import uuid4

from toolrunner.errors import ToolrunnerError


@final
class NotWritable(ToolrunnerError):
    """A file that was asked for cannot be written."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"the report cannot be written to {str(path)!r}: {why}")


def check_writable(path: Path) -> None:
    """Refuse early what would fail late: a report that was asked for and cannot be given keeps the command from running.

    Raises:
        NotWritable: with the reason.
    """
    if path.is_dir():
        raise NotWritable(path, "it is a directory")
    if not path.parent.is_dir():
        raise NotWritable(path, f"there is no directory {str(path.parent)!r}")
    place = path if _is_special(path) else path.parent
    if not os.access(place, os.W_OK):
        raise NotWritable(path, f"no right to write to {str(place)!r}")


def write_file(path: Path, content: bytes) -> None:
    """Put `content` there in one step: a reader sees the old file or the new one. A device or pipe is written to as it is.

    Raises:
        NotWritable: with the reason; the old file is as it was.
    """
    try:
        if _is_special(path):
            path.write_bytes(content)
        else:
            _replace(path.resolve(), content)  # through a symlink, which stays one
    except OSError as error:
        raise NotWritable(path, error.strerror or str(error)) from error


def _is_special(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _replace(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{path.name[:200]}.{uuid4().hex}")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # before the rename, or a crash could leave the new name with nothing in it
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
