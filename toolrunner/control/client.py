"""The asking side, for `toolrunner ps` and `toolrunner cancel`. Blocking, bounded; no state.

What comes from the socket is checked like anything foreign: its folder is ours alone, and yet a tool of ours may have put a
socket there.
"""

import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, final

from pydantic import BaseModel, Field

from toolrunner.control import lines, place
from toolrunner.errors import ToolrunnerError

ASK_BOUND = 5.0
"""Seconds for a program to answer; its loop may be busy with a body that does not yield."""


@final
class NotReached(ToolrunnerError):
    """A program does not answer as it should."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"the program at {path.name!r} did not answer: {why}")


@final
class Call(BaseModel):
    """A call under way."""

    run_id: str = Field(max_length=64)
    name: str
    standing: str
    since: str
    call_id: str | None = None
    pid: int | None = None
    starttime: int | None = None


@final
class Answer(BaseModel):
    """What a program says of itself."""

    v: int
    pid: int
    starttime: int
    since: str
    about: dict[str, str] = {}
    calls: list[Call] = []
    more_calls: int = 0


@final
@dataclass(frozen=True, slots=True)
class Found:
    """One socket: its program's answer, or why there is none."""

    path: Path
    answer: Answer | None
    problem: str = ""


def runners() -> list[Found]:
    """Every program of this user that serves. Sockets of dead ones are removed.

    Raises:
        NoPlace: the folder of the sockets is not ours alone.
    """
    found = list[Found]()
    for path in place.sockets(place.folder(make=False)):
        try:
            with place.connect(path, ASK_BOUND) as connection:
                answer = Answer.model_validate(_checked(path, next(_ask(connection, {"verb": "list"}), None)))
                found.append(Found(path, answer))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
        except (NotReached, OSError, ValueError) as error:  # a ValidationError is a ValueError
            problem = error if isinstance(error, NotReached) else NotReached(path, _told(error))
            found.append(Found(path, None, str(problem)))
    return found


def request_cancel(path: Path, run_id: str | None) -> Iterator[dict[str, Any]]:
    """Ask the program at `path` to stop a call, or all; yields its answers as they come. Waits as long as the calls take.

    Raises:
        NotReached: it refuses, or is gone.
    """
    try:
        with place.connect(path, ASK_BOUND) as connection:
            answers = _ask(connection, {"verb": "cancel", "run": run_id})
            yield _checked(path, next(answers, None))
            yield from answers
    except (OSError, ValueError) as error:
        raise NotReached(path, _told(error)) from error


def _ask(connection: socket.socket, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
    connection.sendall(lines.encode(question))
    with connection.makefile("rb") as file:
        if line := _first_line(connection, file):
            yield lines.decode(line)
        connection.settimeout(None)
        while line := file.readline(lines.LONGEST_ANSWER):
            yield lines.decode(line)


def _first_line(connection: socket.socket, file: BufferedReader) -> bytes:
    # A socket's own time limit is for each read: it would begin anew with every byte.
    until, line = time.monotonic() + ASK_BOUND, b""
    while not line.endswith(b"\n") and len(line) < lines.LONGEST_ANSWER:
        if (left := until - time.monotonic()) <= 0:
            raise TimeoutError
        connection.settimeout(left)
        if not (there := file.peek(1)):  # reads once at the most
            break
        line += file.readline(len(there))
    return line


def _checked(path: Path, item: dict[str, Any] | None) -> dict[str, Any]:
    if item is None:
        raise NotReached(path, "it closed the connection")
    if "refused" in item:
        raise NotReached(path, lines.cut(str(item["refused"])))
    return item


def _told(error: OSError | ValueError) -> str:
    if isinstance(error, TimeoutError):
        return f"not within {ASK_BOUND:g} s"
    return error.strerror or str(error) if isinstance(error, OSError) else "its answer cannot be read"
