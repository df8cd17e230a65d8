"""Jobs as calls see them: `ctx.jobs`, what a command leaves, the records about both, and their end with a call that is stopped.

No state of its own: a call's jobs hang on its ActiveCall, all of them in the runner's JobTable.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Literal, cast, final

import anyio

from toolrunner.facts import StillRunning, StillRunningKind
from toolrunner.observe import Watches
from toolrunner.pipeline.plans import job_plan
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.process import Job, JobOrigin, Prepared, ProcessEnd
from toolrunner.records import JobEnded, JobStarted
from toolrunner.tools import Command

_Over = Literal["exited", "stopped", "timed_out", "refused", "lost"]


@final
class JobRecords:
    """Tells the journal and the watches of jobs; `JobNews` of the table."""

    def __init__(self, emit: Callable[..., Awaitable[None] | None], watches: Watches) -> None:
        self._emit, self._watches = emit, watches

    def started(self, job: Job, process: Prepared) -> Awaitable[None] | None:
        """`job/started`, durable before it is released."""
        return self._emit(
            JobStarted(
                run_id=job.origin.run_id or job.id,
                job_id=job.id,
                name=job.origin.what,
                process=None if job.first_seen else process.identity,
                running=job.first_seen,
            )
        )

    def ended(self, job: Job) -> None:
        """`job/ended`."""
        assert job.end is not None
        self._emit(
            JobEnded(
                run_id=job.origin.run_id or job.id,
                job_id=job.id,
                state=cast(_Over, str(job.state)),
                started=job.end.started,
                exit_code=None if job.first_seen else job.end.facts.exit_code,
                signals=job.end.signals,
                still_running=job.end.still_running,
            )
        )

    def writes(self) -> Callable[[], object]:
        """Nobody can tell where a job writes that does not only read."""
        return self._watches.writer_active().close


@final
class CallJobs:
    """`ctx.jobs` of one call."""

    def __init__(self, state: ActiveCall, services: Services) -> None:
        self._state, self._services = state, services

    async def start(self, command: Command, what: str = "", *, read_only: bool = False) -> Job:
        """Start a job; see `tools.Jobs`."""
        plan = job_plan(command, self._services.limits)
        origin = JobOrigin(run_id=self._state.run_id, what=what or command.argv[0], read_only=read_only)
        job = await self._services.jobs.start(plan, origin, self._why_not)
        self._state.jobs.append(job)
        return job

    def list(self) -> tuple[Job, ...]:
        """All that live, of the whole runner."""
        return self._services.jobs.list()

    def get(self, job_id: str) -> Job:
        """One of them, or one that has ended. Raises UnknownJob."""
        return self._services.jobs.get(job_id)

    def _why_not(self) -> str | None:
        """A job that is released after its call was stopped would be nobody's: whoever stopped it sees a call that is over."""
        reason = self._state.body_signal.reason
        if reason is not None:
            return f"its call is being stopped ({reason.text})"
        return "its call is over" if self._state.end is not None else None


async def keep_or_end(state: ActiveCall, services: Services, prepared: Prepared, job: Job, end: ProcessEnd) -> ProcessEnd:
    """What a command left becomes a job, unless its call is being stopped: then it ends, and is told as ended."""
    if state.body_signal.aborted:
        prepared.stop()
        with anyio.CancelScope(shield=True):
            rest = await prepared.wait_rest()
        return replace(
            end,
            facts=replace(end.facts, kept=(), leftovers=_as_processes(end.facts.kept), unreaped=rest.facts.unreaped),
            signals=rest.signals,
            escalated=rest.escalated,
            stop_requested_at=rest.stop_requested_at,
            delivered_at=rest.delivered_at,
            ended_at=rest.ended_at,
            still_running=rest.still_running,
        )
    job.first_seen = end.facts.kept
    services.jobs.adopt(prepared, job, state.published_early.wait)
    state.jobs.append(job)
    listed = job.still_running()
    return replace(end, facts=replace(end.facts, kept=listed), still_running=listed)


async def end_jobs(state: ActiveCall) -> None:
    """End what a stopped call started or left as jobs, and tell it as ended."""
    with anyio.CancelScope(shield=True):
        for job in state.jobs:
            job.request_stop()
        for job in state.jobs:
            await job.stop()
    end = state.end
    if end is not None and end.process is not None and end.process.kept:
        facts = replace(end.process, kept=(), leftovers=_as_processes(end.process.kept))
        left = tuple(one for job in state.jobs if job.end is not None for one in job.end.still_running or ())
        proven = all(job.end is not None and job.end.still_running is not None for job in state.jobs)
        state.end = replace(end, process=facts, still_running=left or (() if proven else None))


def living(state: ActiveCall) -> tuple[StillRunning, ...]:
    """The jobs of a call that live, as its result lists them, and what could not be ended of one that was stopped."""
    ends = [job.end.still_running or () if job.end is not None else job.still_running() for job in state.jobs]
    return tuple(one for end in ends for one in end)


def _as_processes(kept: tuple[StillRunning, ...]) -> tuple[StillRunning, ...]:
    return tuple(replace(one, kind=StillRunningKind.PROCESS) for one in kept)
