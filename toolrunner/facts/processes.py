"""How a process tool ran and ended, and what of it is still alive."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Containment(StrEnum):
    """What answers for "every descendant is gone", strongest first."""

    PIDNS = "pidns"
    CGROUP = "cgroup"
    KEEPER = "keeper"
    BEST_EFFORT = "best_effort"


class Drained(StrEnum):
    """How reading the output ended: all ends closed, or a holder outlived the drain deadline."""

    NONE = "none"
    EOF = "eof"
    DEADLINE = "deadline"


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process that cannot be confused with a later one of the same number.

    `starttime` is field 22 of /proc/PID/stat (clock ticks since boot, proc(5)); `pid_namespace` the inode of /proc/self/ns/pid.
    """

    pid: int
    starttime: int
    boot_id: str
    pid_namespace: int


class StillRunningKind(StrEnum):
    """What is still running after a result was published."""

    PROCESS = "process"
    BODY = "body"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class StillRunning:
    """One thing that outlived the call: a process that could not be ended, a kept job, an in-process body."""

    what: str
    kind: StillRunningKind
    pid: int | None = None
    uid: int | None = None
    since: datetime | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """Facts of one process call. `exit_code` and `signal` are the leader's; exactly one is set once it ended and was reaped.

    `stdout` and `stderr` are decoded with replacement and bounded (head and tail); the `_bytes` totals count everything that
    came. `spill` names the file that holds all of it. `leftovers` were ended by us after the leader; `kept` live on as a job;
    `unreaped` got SIGKILL and did not go within the reap bound.
    """

    pid: int | None
    containment: Containment
    exit_code: int | None = None
    signal: str | None = None
    stdout: str = ""
    stderr: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    truncated: bool = False
    spill: tuple[str, ...] = ()
    drained: Drained = Drained.NONE
    leader_exit_at: datetime | None = None
    leftovers: tuple[StillRunning, ...] = ()
    kept: tuple[StillRunning, ...] = ()
    unreaped: tuple[StillRunning, ...] = ()
