"""How one supervised process ended, or why it never began. Frozen values; the supervisor fills them in from kernel facts."""

import errno
import os
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import final

from toolrunner.facts import Process, StillRunning
from toolrunner.results import Sandbox


class EndCause(StrEnum):
    """Why the process is over. The first cause wins, in the order in which the keeper saw them."""

    EXITED = "exited"
    STOPPED = "stopped"
    """A signal that `stop` asked for was sent before the leader exited; its status does not matter then."""
    TIMED_OUT = "timed_out"
    """The deadline of the plan came first."""
    SPAWN_FAILED = "spawn_failed"
    """Released, but the command itself never ran: the exec failed."""
    KEEPER_LOST = "keeper_lost"
    """The supervising process died or answered no more. `still_running` says what is known."""


class SpawnErrorKind(StrEnum):
    """What kept a command from running; on the command line 127, 126, 126 and 125."""

    NOT_FOUND = "not_found"
    NOT_EXECUTABLE = "not_executable"
    TOO_LONG = "too_long"
    SETUP = "setup"
    SANDBOX = "sandbox"
    """What was to contain it cannot, or did not."""


_KINDS = {
    errno.ENOENT: SpawnErrorKind.NOT_FOUND,
    errno.ENOTDIR: SpawnErrorKind.NOT_FOUND,
    errno.EACCES: SpawnErrorKind.NOT_EXECUTABLE,
    errno.EPERM: SpawnErrorKind.NOT_EXECUTABLE,
    errno.ENOEXEC: SpawnErrorKind.NOT_EXECUTABLE,
    errno.EISDIR: SpawnErrorKind.NOT_EXECUTABLE,
    errno.ELOOP: SpawnErrorKind.NOT_EXECUTABLE,
    errno.ETXTBSY: SpawnErrorKind.NOT_EXECUTABLE,
    errno.ELIBBAD: SpawnErrorKind.NOT_EXECUTABLE,
    errno.E2BIG: SpawnErrorKind.TOO_LONG,
}


def exec_error_kind(number: int) -> SpawnErrorKind:
    """The kind of an errno that execve(2) gave. What is not about the file or its arguments is `setup`."""
    return _KINDS.get(number, SpawnErrorKind.SETUP)


@dataclass(frozen=True, slots=True)
class SpawnError:
    """Why a command did not run; `message` names which path, argument or limit it was."""

    kind: SpawnErrorKind
    message: str
    errno: int | None = None


@final
class SpawnRefused(Exception):
    """Nothing was released: the process was refused before its start gate. The pipeline makes a result of it."""

    def __init__(self, kind: SpawnErrorKind, message: str, number: int | None = None) -> None:
        super().__init__(message)
        self.error = SpawnError(kind, message, number)

    @classmethod
    def from_os(cls, what: str, exc: OSError) -> "SpawnRefused":
        """Refusal because a call of the system failed; `what` says which step it was."""
        number = exc.errno or 0
        return cls(SpawnErrorKind.SETUP, f"{what}: {os.strerror(number) if number else exc}", exc.errno)


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """Everything known about a process that is over.

    `started` is False only with proof that the command did not run. `signals` are those that were really sent for the stop, in
    order ("SIGTERM", "SIGKILL"). `still_running` is () when the kernel said that no descendant is left, None when nothing was
    found but nothing proves it, else what is left. `enforced` names what was asked for beyond that and held, `missing`
    guarantees that did not hold and why. `sink_dropped` counts
    bytes that an aborted call's sink did not get, because it was still busy when the abort released it.
    """

    facts: Process
    started: bool
    cause: EndCause
    spawn_error: SpawnError | None = None
    signals: tuple[str, ...] = ()
    escalated: bool = False
    stop_requested_at: datetime | None = None
    delivered_at: datetime | None = None
    ended_at: datetime | None = None
    still_running: tuple[StillRunning, ...] | None = None
    enforced: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    sink_dropped: int = 0
    sandbox: Sandbox | None = None
    """What contained it, if anything was asked to."""
