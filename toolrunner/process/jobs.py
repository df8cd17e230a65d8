"""The job table: every job of one runner, listed while it lives, ended when the runner closes.

State: a JobTable's jobs by id; a task of the runner reads each one's output and waits for its end.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, final

import anyio
import anyio.lowlevel

from toolrunner.errors import ToolrunnerError
from toolrunner.process.ending import ProcessEnd, SpawnErrorKind, SpawnRefused
from toolrunner.process.job import MOST_ENDED, NOBODYS, Job, JobOrigin, UnknownJob
from toolrunner.process.plan import LaunchPlan
from toolrunner.process.prepared import Prepared

MOST_JOBS = 64
"""Living jobs of one runner: somebody who starts more has lost sight of them."""


class JobNotStarted(ToolrunnerError):
    """The job was not released, so nothing of it ran; the message says why."""


class JobNews(Protocol):
    """Whom a table tells. `started` returns what to await until the news is durable, or None."""

    def started(self, job: Job, process: Prepared) -> Awaitable[None] | None: ...
    def ended(self, job: Job) -> object: ...
    def writes(self) -> Callable[[], object]:
        """A job may write files from now on, until what is returned is called."""
        ...


@final
class JobTable:
    """One per runner. `prepare` makes processes, `spawn` starts a task that nobody's cancel reaches."""

    def __init__(
        self,
        prepare: Callable[..., Awaitable[Prepared]],
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]], str], object],
        news: JobNews,
    ) -> None:
        self._prepare, self._spawn, self._news = prepare, spawn, news
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._closed = False

    def list(self) -> tuple[Job, ...]:
        """The living, oldest first."""
        return tuple(job for job in self._jobs.values() if job.end is None)

    def get(self, job_id: str) -> Job:
        """A job, living or ended. Raises UnknownJob."""
        try:
            return self._jobs[job_id]
        except KeyError:
            raise UnknownJob(job_id) from None

    def require_room(self) -> None:
        """Refuse what would become one job too many, before anything of it runs. Raises SpawnRefused."""
        if self._closed:
            raise SpawnRefused(SpawnErrorKind.SETUP, "a job cannot be started: its runner is closing")
        if len(self.list()) >= MOST_JOBS:
            raise SpawnRefused(SpawnErrorKind.SETUP, f"{MOST_JOBS} jobs are running; stop one first")

    async def start(self, plan: LaunchPlan, origin: JobOrigin = NOBODYS, stopped: Callable[[], str | None] = lambda: None) -> Job:
        """Start a job. `stopped` says why it must not be started (any more); it is asked last right before the release.

        Raises:
            SpawnRefused: nothing was released, and why.
            JobNotStarted: `stopped` said so. Nothing was released, and no job is listed.
        """
        self.require_room()
        _check(stopped)
        job = Job(origin)
        process = await self._prepare(plan, on_output=job.log)
        told = False
        try:
            self.require_room()  # it may have been closed, or filled, while this one was prepared
            _check(stopped)
            job.held_by(process)
            durable = self._news.started(job, process)
            told = True
            if durable is not None:
                await durable
            self.require_room()
            _check(stopped)
        except BaseException:
            if told:  # of the start, so of the end too; by a task that the cancel which may have brought us here does not reach
                self._spawn(lambda: self._follow(job, process.wait), f"job {job.id}: its end")
            await process.abandon()
            await anyio.lowlevel.checkpoint_if_cancelled()  # a cancelled start ends as that, whatever `stopped` said of it
            raise
        # The moment of action: nothing between the last check and the release.
        process.go()
        self._own(job, process.wait_rest)
        return job

    def adopt(self, process: Prepared, job: Job, after: Callable[[], Awaitable[object]]) -> None:
        """Take over what a call left (`Leftovers.KEEP`): one that has ended, and whose rest lives on.

        What it writes before `after` has returned is still its call's.
        """
        job.held_by(process)
        self._news.started(job, process)
        self._own(job, process.wait_rest, after)
        if self._closed:
            job.request_stop()

    def _own(
        self,
        job: Job,
        end: Callable[[], Awaitable[ProcessEnd]],
        after: Callable[[], Awaitable[object]] = anyio.lowlevel.checkpoint,
    ) -> None:
        self._jobs[job.id] = job
        ended = [one.id for one in self._jobs.values() if one.end is not None]
        for job_id in ended[: max(0, len(ended) - MOST_ENDED)]:
            del self._jobs[job_id]
        self._spawn(lambda: self._follow(job, end), f"job {job.id}")
        if not job.origin.read_only:
            self._spawn(lambda: self._note_writes(job, after), f"job {job.id}: what it writes")

    async def _follow(self, job: Job, end: Callable[[], Awaitable[ProcessEnd]]) -> None:
        job.is_over(await _unconditionally(job, end))
        self._news.ended(job)

    async def _note_writes(self, job: Job, after: Callable[[], Awaitable[object]]) -> None:
        await after()
        if job.end is None:
            over = self._news.writes()
            try:
                await job.wait()
            finally:
                over()

    def close(self, grace: float | None = None) -> None:
        """No more jobs; ask all that live for their end. Their tasks wait for it."""
        self._closed = True
        for job in self.list():
            job.request_stop(grace)


def _check(stopped: Callable[[], str | None]) -> None:
    why = stopped()
    if why is not None:
        raise JobNotStarted(f"the job was not started: {why}")


async def _unconditionally(job: Job, end: Callable[[], Awaitable[ProcessEnd]]) -> ProcessEnd:
    """Wait for the end. The loop's own tear-down does not end the wait: kill now, and go on waiting."""
    while True:
        try:
            with anyio.CancelScope(shield=True):
                return await end()
        except anyio.get_cancelled_exc_class():
            job.request_stop(0)
