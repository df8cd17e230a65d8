"""One job: a process, or what a command left, that nobody's call waits for. Read, written to, waited for and stopped here.

State: changed by its own end, and by the table that owns it (`held_by`, `is_over`); everything else only looks.
"""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import final

import anyio

from toolrunner.errors import ConfigError, ToolrunnerError
from toolrunner.facts import StillRunning, StillRunningKind
from toolrunner.process.ending import EndCause, ProcessEnd
from toolrunner.process.joblog import JobLog, JobText
from toolrunner.process.plan import WindowSize
from toolrunner.process.prepared import Prepared

MOST_ENDED = 256
"""Ended jobs whose output can still be read; the oldest go first."""

READ_SIZE = 1 << 16
"""Bytes that one `read` gives at most, if nobody says otherwise."""


class UnknownJob(ToolrunnerError, LookupError):
    """No job with this id is known: never started here, or ended long ago."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"no job {job_id!r} is known here (the output of ended jobs is kept for the last {MOST_ENDED})")
        self.job_id = job_id


class JobState(StrEnum):
    """Where a job is."""

    RUNNING = "running"
    EXITED = "exited"
    STOPPED = "stopped"
    TIMED_OUT = "timed_out"
    REFUSED = "refused"
    """The command itself never ran; `end.spawn_error` says why."""
    LOST = "lost"


_STATES = {
    EndCause.EXITED: JobState.EXITED,
    EndCause.STOPPED: JobState.STOPPED,
    EndCause.TIMED_OUT: JobState.TIMED_OUT,
    EndCause.SPAWN_FAILED: JobState.REFUSED,
    EndCause.KEEPER_LOST: JobState.LOST,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrigin:
    """`run_id`: the call that it came from, "" when no call did. `what` names it for people. `read_only`: it changes nothing."""

    run_id: str = ""
    what: str = ""
    read_only: bool = False


NOBODYS = JobOrigin()


@final
class Job:
    """A living job, or what is known of an ended one. `end` is None while it runs."""

    def __init__(self, origin: JobOrigin, running: tuple[StillRunning, ...] = ()) -> None:
        self.id = f"job-{secrets.token_hex(4)}"
        self.origin = origin
        self.started_at = datetime.now(UTC)
        self.end: ProcessEnd | None = None
        self.first_seen = running
        """Who it consisted of when it became a job."""
        self.logs = {"stdout": JobLog(), "stderr": JobLog()}
        self._process: Prepared | None = None
        self._over = anyio.Event()

    @property
    def state(self) -> JobState:
        """Running until nothing of it is left."""
        return _STATES[self.end.cause] if self.end is not None else JobState.RUNNING

    @property
    def pid(self) -> int | None:
        """The process that leads it: of a started job the command, of a kept one the first of those that were left."""
        if self.first_seen:
            return self.first_seen[0].pid
        identity = self._process.identity if self._process is not None else None
        return identity.pid if identity is not None else None

    @property
    def pids(self) -> tuple[int, ...]:
        """Who it consisted of when it became a job. What they start meanwhile belongs to it too and ends with it."""
        return tuple(one.pid for one in self.first_seen if one.pid) or ((self.pid,) if self.pid is not None else ())

    def still_running(self) -> tuple[StillRunning, ...]:
        """The job as a result lists it; () when it is over."""
        if self.end is not None:
            return ()
        named = [(one.what, one.pid, one.uid, one.since) for one in self.first_seen]
        named = named or [(self.origin.what, self.pid, None, self.started_at)]
        return tuple(StillRunning(f"{what} ({self.id})", StillRunningKind.JOB, pid, uid, at) for what, pid, uid, at in named)

    def read(self, offset: int = 0, stream: str = "stdout", most: int = READ_SIZE) -> JobText:
        """What it has printed on `stream` from byte `offset` on; never waits. Raises ConfigError for another stream."""
        if stream not in self.logs:
            raise ConfigError("stream", stream, "'stdout' or 'stderr'")
        if offset < 0 or most < 1:
            raise ConfigError("offset or most", (offset, most), "0 or more bytes, and 1 or more")
        return self.logs[stream].read(offset, most)

    async def write(self, data: bytes | str) -> int:
        """Write to its stdin, if its plan has that open. How many bytes were taken: fewer when nobody reads it (any more)."""
        data = data.encode() if isinstance(data, str) else data
        return await self._process.write(data) if self._process is not None and self.end is None else 0

    def close_stdin(self) -> None:
        """No more input comes."""
        if self._process is not None and self.end is None:
            self._process.close_stdin()

    def resize(self, size: WindowSize) -> None:
        """Change the size of its terminal."""
        if self._process is not None and self.end is None:
            self._process.resize(size)

    async def wait(self, limit: float | None = None) -> JobState:
        """Wait for its end, `limit` seconds at most; its state then."""
        with anyio.move_on_after(limit):
            await self._over.wait()
        return self.state

    def request_stop(self, grace: float | None = None) -> None:
        """Ask for its end by the ladder, without waiting. Idempotent; a later call can only shorten the grace."""
        if self._process is not None and self.end is None:
            self._process.stop(grace=grace)

    async def stop(self, grace: float | None = None) -> ProcessEnd:
        """End it with everything it started: SIGTERM, `grace` seconds (default: its plan's), SIGKILL. Its end."""
        self.request_stop(grace)
        await self._over.wait()
        assert self.end is not None
        return self.end

    def held_by(self, process: Prepared) -> None:
        """The table's: whose orders it takes."""
        self._process = process

    def is_over(self, end: ProcessEnd) -> None:
        """The table's: nothing of it is left."""
        self.end = end
        for log in self.logs.values():
            log.ended = True
        self._over.set()

    def log(self, stream: str, data: bytes) -> None:
        """The observer of its output."""
        self.logs[stream].add(data)
