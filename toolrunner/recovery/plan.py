"""What recovery adds to a journal: the missing results, and the ends of jobs that nobody saw end. Pure; no state.

Deterministic: the records follow from the stories and from what a look at the processes showed. Idempotent: a call that has its
result is left alone, so a second recovery, or the rest of one that was killed half-way, adds what is missing and nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import final

from toolrunner.facts import ProcessIdentity, StillRunning
from toolrunner.records import CallSettled, JobEnded, JobStarted, Record, now
from toolrunner.recovery.fold import recovered
from toolrunner.recovery.stories import Stories, Story
from toolrunner.results import Code, ToolResult

Looked = Mapping[ProcessIdentity, tuple[StillRunning, ...] | None]
"""What is left of each process: () is a proof, None is not."""

NOT_LOOKED: Looked = {}


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """`results` are new, children first; `records` say them and are to be appended in this order."""

    results: tuple[ToolResult, ...] = ()
    pending: tuple[Story, ...] = ()
    """Calls whose approval was asked elsewhere and may still be answered: they stay open."""
    records: tuple[Record, ...] = ()


def plan(
    stories: Stories,
    looked: Looked = NOT_LOOKED,
    stays: Callable[[Story], bool] = lambda _: False,
    is_past: Callable[[int], bool] = lambda _: False,
) -> Plan:
    """What is missing. `stays` says which calls without a dispatch wait for an answer that may still come.

    `is_past(seq)`: the machine was started anew since that record, so nothing of that time can live.
    """
    at = stories.last_at if stories.last_at is not None else now()
    children = {run_id: story.settled.result for run_id, story in stories.by_run.items() if story.settled is not None}
    results, pending, records = list[ToolResult](), list[Story](), list[Record]()
    for story in stories.open():
        if not story.dispatched and story.ended is None and stays(story):
            pending.append(story)
            continue
        result = children[story.run_id] = recovered(story, children, at, _left(story, looked, is_past))
        results.append(result)
        records.append(CallSettled(run_id=story.run_id, at=at, result=result))
    for story in stories.by_run.values():
        records += [_job_lost(job, at, looked) for job in story.jobs.values() if job.job_id not in story.jobs_over]
    return Plan(tuple(results), tuple(pending), tuple(records))


def processes(stories: Stories) -> dict[ProcessIdentity, str]:
    """Processes whose end nobody saw, each with the name of what it is: of calls that are lost, and of jobs."""
    found = dict[ProcessIdentity, str]()
    for story in stories.by_run.values():
        if story.dispatched and story.dispatched[-1].process is not None and _is_lost(story):
            found[story.dispatched[-1].process] = story.name
        found |= {job.process: job.name for job in story.jobs.values() if job.process is not None}
    return found


def _is_lost(story: Story) -> bool:
    if story.settled is not None:
        return story.settled.result.code in (Code.LOST, Code.KEEPER_LOST)
    return story.ended is None or story.ended.code in (Code.LOST, Code.KEEPER_LOST)


def _left(story: Story, looked: Looked, is_past: Callable[[int], bool]) -> tuple[StillRunning, ...] | None:
    if not story.dispatched:
        return ()
    process = story.dispatched[-1].process
    if process is not None:
        return looked.get(process)
    # A body in the host's own process is over with it, but what it started by itself is not seen from here.
    return () if is_past(story.dispatched[-1].seq) else None


def _job_lost(job: JobStarted, at: datetime, looked: Looked) -> JobEnded:
    left = looked.get(job.process) if job.process is not None else None
    return JobEnded(run_id=job.run_id, at=at, job_id=job.job_id, state="lost", still_running=left)
