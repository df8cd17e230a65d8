"""What a wrapper said about the command that it contains: whether that ran. Pure but for the read.

The words are those that bwrap(1) writes for `--json-status-fd`, one JSON document a line: `child-pid` before it lets the new
process go on, `exit-code` after the end of a command that was executed, and of no other.
"""

import json
import os
from typing import Any

STATUS_LIMIT = 4096
"""Bytes. Two short lines are all there is; the command itself cannot write there."""


def read_status(fd: int) -> bytes:
    """All of it. Everything that could write is gone, so nothing is waited for."""
    try:
        return os.read(fd, STATUS_LIMIT)
    except OSError:  # EAGAIN: something that is not over yet still holds the pipe, and nothing was written
        return b""


def command_ran(status: bytes, *, ended_by_itself: bool) -> bool | None:
    """True and False are proofs; None = the wrapper was killed before it could tell."""
    said = _documents(status)
    if any("exit-code" in each for each in said):
        return True
    if not any("child-pid" in each for each in said):
        return False  # it is written before the process that would become the command is let go
    return False if ended_by_itself else None


def _documents(status: bytes) -> list[dict[str, Any]]:
    found = []
    for line in status.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:  # cut short by its end
            continue
    return [each for each in found if isinstance(each, dict)]
