"""Supervised processes: start one behind a gate, stop it with everything it started, and say truthfully how it ended.

`Supervisor.prepare(plan)` gives a `Prepared`; `go` releases it, `stop` asks for its end, `wait` returns the `ProcessEnd`.
`keeping/` holds what runs in the warden and the keepers, under a bare interpreter with nothing but the standard library.
"""

from toolrunner.process.cgroups import CgroupLimits
from toolrunner.process.ending import EndCause, ProcessEnd, SpawnError, SpawnErrorKind, SpawnRefused
from toolrunner.process.job import Job, JobOrigin, JobState, UnknownJob
from toolrunner.process.joblog import JobText
from toolrunner.process.jobs import JobNotStarted, JobTable
from toolrunner.process.plan import (
    DEFAULT_GRACE,
    DEFAULT_OUTPUT_LIMIT,
    QUIET_ENVIRONMENT,
    LaunchPlan,
    Leftovers,
    Stdin,
    WindowSize,
    Wrapping,
)
from toolrunner.process.prepared import Observer, Prepared, Processes, Sink
from toolrunner.process.probe import Abilities
from toolrunner.process.supervisor import Supervisor

__all__ = [
    "DEFAULT_GRACE",
    "DEFAULT_OUTPUT_LIMIT",
    "QUIET_ENVIRONMENT",
    "Abilities",
    "CgroupLimits",
    "EndCause",
    "Job",
    "JobNotStarted",
    "JobOrigin",
    "JobState",
    "JobTable",
    "JobText",
    "LaunchPlan",
    "Leftovers",
    "Observer",
    "Prepared",
    "ProcessEnd",
    "Processes",
    "Sink",
    "SpawnError",
    "SpawnErrorKind",
    "SpawnRefused",
    "Stdin",
    "Supervisor",
    "UnknownJob",
    "WindowSize",
    "Wrapping",
]
