"""The values that a call's state is made of: why it was never started, how its body ended, what it watches. No state."""

from dataclasses import dataclass, field
from typing import final

from toolrunner.facts import Process, StillRunning
from toolrunner.facts.quick import quick
from toolrunner.observe import Snapshot, Watch, Writer
from toolrunner.results import Code, Ended, Error, ErrorKind, Outcome, Sandbox
from toolrunner.tools import Reply


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call was never started."""

    outcome: Outcome
    code: Code
    error: Error | None = None


def code_of(kind: str) -> Code:
    """The case of a process that was never started, by why it was not."""
    return Code.SANDBOX_UNAVAILABLE if kind == ErrorKind.SANDBOX else Code.SPAWN_REFUSED


@quick
@dataclass(frozen=True, slots=True)
class BodyEnd:
    """How one started body is over. `code` is the case if nothing of ours stopped it; `timed_out` is the keeper's own clock.

    `saw_abort` says that the body had noticed the stop before it ended; `exit_ok` is None for in-process bodies. `fatal` is a
    KeyboardInterrupt or SystemExit, which the batch raises again once everything is drained.
    """

    ended: Ended
    reply: Reply = field(default_factory=Reply)
    error: Error | None = None
    code: Code | None = None
    timed_out: bool = False
    saw_abort: bool = False
    process: Process | None = None
    still_running: tuple[StillRunning, ...] | None = ()
    enforced: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    sandbox: Sandbox | None = None
    fatal: BaseException | None = None


@final
@dataclass(frozen=True, slots=True)
class CallWatch:
    """What one call watches: who it is among the writers, and the look before it (None: it only writes)."""

    watch: Watch | Writer
    before: Snapshot | None
