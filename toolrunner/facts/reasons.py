"""Why a call was stopped, who asked for it, and when each step of the stop happened."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from toolrunner.facts.quick import quick


class AbortMode(StrEnum):
    """How hard an abort asks. `drain` closes what has not started and lets started calls finish."""

    IMMEDIATE = "immediate"
    DRAIN = "drain"


class Source(StrEnum):
    """Who asked for a stop. A wrapper's own abort is `wrapper:NAME`, built with `wrapper_source`."""

    CALLER = "caller"
    HOOK = "hook"
    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"
    HOST = "host"
    PARENT = "parent"
    APPROVER = "approver"
    COST = "cost"
    PEER_DISCONNECTED = "peer_disconnected"


def wrapper_source(name: str) -> str:
    """The source of an abort that an execute wrapper brought in."""
    return f"wrapper:{name}"


@quick
@dataclass(frozen=True, slots=True)
class AbortReason:
    """The cause of an abort. The first cause wins, so once seen it never changes."""

    source: str
    text: str


class StopPhase(StrEnum):
    """Where the call was when the abort reached it."""

    BEFORE_DISPATCH = "before_dispatch"
    RUNNING = "running"
    FINISHING = "finishing"


@quick
@dataclass(frozen=True, slots=True)
class Stop:
    """The stop of one call: asked for, delivered, over. Each time is None until that step happened.

    `signals` are those that were really sent, in order; `escalated` says that the grace period ran out and SIGKILL followed.
    """

    source: str
    reason: str
    phase: StopPhase
    requested_at: datetime
    delivered_at: datetime | None = None
    ended_at: datetime | None = None
    signals: tuple[str, ...] = ()
    escalated: bool = False


class NoteKind(StrEnum):
    """Things a reader of the result must know that are no outcome of their own."""

    JOURNAL_ERROR = "journal_error"
    HOOKS_LOST = "hooks_lost"
    ABORTED_AT_ENTRY = "aborted_at_entry"
    SHELL_RESTARTED = "shell_restarted"
    RECONCILED = "reconciled"
    """On a replayed result alone: its facts are those of the end of the call, and somebody has looked since."""


@dataclass(frozen=True, slots=True)
class Note:
    """One note: its kind for programs, its text for people."""

    kind: NoteKind
    text: str
