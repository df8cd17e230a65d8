"""The three standard streams, there whatever we were started with; an error in writing ours is told from any other OSError.

State: `sys.stdin`, `sys.stdout`, `sys.stderr`, replaced once before anything is printed; `_missing`, written then.
"""

import io
import os
import sys
from typing import Any, final

from toolrunner.errors import ToolrunnerError


@final
class NoOutput(ToolrunnerError):
    """Standard output takes nothing: a full disk, or a reader that left."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output cannot be written: {error.strerror or error}")
        self.reader_left = isinstance(error, BrokenPipeError)


@final
class _Stdout(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise NoOutput(error) from error


_missing: set[int] = set()
"""Standard streams that we were started without."""


def lose_no_result() -> None:
    """A result is to be written to standard output. If we were started without one, that has to fail, and not go to /dev/null."""
    if 1 in _missing:
        nowhere = os.open(os.devnull, os.O_RDONLY)  # writing to it is EBADF, as without it
        os.dup2(nowhere, 1)
        os.close(nowhere)


def open_streams() -> None:
    """Open what we were started without on /dev/null, else the next file opened would take its number, and name all of it."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
            _missing.add(fd)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 - the interpreter's streams are never closed either
    sys.stderr = sys.stderr or open(2, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
    # Names of files may be in no encoding: better written out than a traceback.
    out = io.BufferedWriter(_Stdout(1, "w", closefd=False))
    sys.stdout = io.TextIOWrapper(out, errors="backslashreplace", write_through=True)
