"""Processes that outlive their calls. Frozen; no state."""

from dataclasses import dataclass
from typing import Literal

from toolrunner.facts import ProcessIdentity, StillRunning
from toolrunner.records.base import BaseRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted(BaseRecord):
    """A process that may outlive its call: about to be released as a job, or left by a command that has ended.

    `run_id` is the call it came from, or the job's own id. `process` waits at its gate; `running` was left.
    """

    job_id: str
    name: str
    process: ProcessIdentity | None = None
    running: tuple[StillRunning, ...] = ()
    type: Literal["job/started"] = "job/started"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded(BaseRecord):
    """Nothing of the job is left but what `still_running` lists (None: nothing was found, and nothing proves it)."""

    job_id: str
    state: Literal["exited", "stopped", "timed_out", "refused", "lost"]
    started: bool = True
    exit_code: int | None = None
    signals: tuple[str, ...] = ()
    still_running: tuple[StillRunning, ...] | None = None
    type: Literal["job/ended"] = "job/ended"
