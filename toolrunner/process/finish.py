"""The end of a process, put together from the report about it and from its streams. Reads only."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import final

from toolrunner.facts import Containment, Drained, Process, ProcessIdentity, StillRunningKind
from toolrunner.process.clocks import date_of
from toolrunner.process.ending import EndCause, ProcessEnd, SpawnError, SpawnErrorKind
from toolrunner.process.plan import LaunchPlan, Wrapping
from toolrunner.process.report import Report, exit_facts, spawn_error, still_running
from toolrunner.process.streams import Reader
from toolrunner.process.wrapped import command_ran
from toolrunner.results import Sandbox

_CAUSES = {
    "exited": EndCause.EXITED,
    "stopped": EndCause.STOPPED,
    "timed_out": EndCause.TIMED_OUT,
    "lost": EndCause.KEEPER_LOST,
}

ENVIRONMENT_READABLE = "environment: a tool of the same user can read the host's own environment (/proc/PID/environ)"


@final
@dataclass(frozen=True, slots=True)
class Finish:
    """What the host itself knows: `released` = its `go` was sent, `stopped` = a stop was asked for.

    `status` is what a wrapper said. `no_keeper` says why the call had none; None when it had one.
    """

    plan: LaunchPlan
    readers: Sequence[Reader]
    released: bool
    stopped: bool
    no_keeper: str | None = None
    enforced: tuple[str, ...] = ()
    status: bytes | None = None

    def build(self, report: Report, identity: ProcessIdentity | None, requested_at: datetime | None) -> ProcessEnd:
        """Everything in one value."""
        # Without our `go` nothing ran, whatever became of the keeper; with it, only a keeper's or an exec's no proves that.
        ran = self.released and report.released is not False and report.exec_error is None
        started = ran and self._command_ran(report) is not False
        cause = self._cause(report, started=started)
        left = still_running(report.kept, StillRunningKind.JOB) or still_running(report.left)
        timed_out = cause is EndCause.TIMED_OUT
        return ProcessEnd(
            facts=self._facts(report, identity, started=started),
            started=started,
            cause=cause,
            spawn_error=self._spawn_error(report) if cause is EndCause.SPAWN_FAILED else None,
            signals=report.signals,
            escalated="SIGKILL" in report.signals[1:],
            stop_requested_at=date_of(report.delivered or report.at) if timed_out and requested_at is None else requested_at,
            delivered_at=date_of(report.delivered),
            ended_at=date_of(report.at),
            still_running=left if left or report.proven else None,
            enforced=(*self.enforced, *self._wrapped(started=started)),
            missing=tuple(self._missing(report)),
            sink_dropped=sum(reader.sink_dropped for reader in self.readers),
            sandbox=Sandbox(wrapping.profile, wrapping.backend) if (wrapping := self.plan.wrapping) is not None else None,
        )

    def _cause(self, report: Report, *, started: bool) -> EndCause:
        if started:
            return _CAUSES[report.cause]
        wrapped = self.status is not None and report.cause == "exited"
        never = report.exec_error is not None or report.cause == "refused" or not self.stopped or wrapped
        return EndCause.SPAWN_FAILED if never else EndCause.STOPPED

    def _command_ran(self, report: Report) -> bool | None:
        if self.status is None:
            return True
        # Of a wrapper that a signal of somebody else's ended, silence proves nothing: it may just not have come to say it.
        by_itself = report.cause == "exited" and exit_facts(report.status)[0] is not None
        return command_ran(self.status, ended_by_itself=by_itself)

    def _wrapped(self, *, started: bool) -> tuple[str, ...]:
        """What a wrapper gave a command that ran in it."""
        return self.plan.wrapping.enforced if self.plan.wrapping is not None and started else ()

    def _unwrapped(self, wrapping: Wrapping) -> SpawnError:
        """Why nothing ran although the wrapper did. Its own words are in its output; they are for people, and change."""
        said = self.readers[-1].capture.text().strip().splitlines()
        words = f": {said[-1]}" if said else ""
        path = next((os.fsdecode(value) for name, value in self.plan.env.items() if name == "PATH" and value is not None), None)
        if os.sep not in wrapping.name and shutil.which(wrapping.name, path=path) is None:
            return SpawnError(SpawnErrorKind.NOT_FOUND, f"{wrapping.name!r}: no such command in the call's PATH")
        return SpawnError(SpawnErrorKind.SANDBOX, f"profile {wrapping.profile}: {wrapping.backend} ran nothing{words}")

    def _spawn_error(self, report: Report) -> SpawnError:
        if self.plan.wrapping is not None and self.status is not None and report.cause == "exited":
            if report.exec_error is not None:
                return SpawnError(SpawnErrorKind.SANDBOX, spawn_error(self.plan.argv[0], *report.exec_error).message)
            return self._unwrapped(self.plan.wrapping)
        if report.exec_error is not None:
            return spawn_error(self.plan.argv[0], *report.exec_error)
        if report.cause == "refused":
            return SpawnError(SpawnErrorKind.SETUP, "the process was killed at its start gate")
        if self.plan.wrapping is not None and self.released and report.released is not False:
            why = "its time was up" if report.cause == "timed_out" else "its supervision was lost"
            text = f"{why} before {self.plan.wrapping.backend} had started the command"
            return SpawnError(SpawnErrorKind.SANDBOX, f"profile {self.plan.wrapping.profile}: {text}")
        return SpawnError(SpawnErrorKind.SETUP, "its supervising process was lost before the command was released")

    def _facts(self, report: Report, identity: ProcessIdentity | None, *, started: bool) -> Process:
        code, signal = exit_facts(report.status) if started else (None, None)
        stdout, stderr = (reader.capture for reader in self.readers)
        return Process(
            pid=identity.pid if identity is not None else None,
            containment=self._containment(report),
            exit_code=code,
            signal=signal,
            stdout=stdout.text(),
            stderr=stderr.text(),
            stdout_bytes=stdout.total,
            stderr_bytes=stderr.total,
            truncated=stdout.truncated or stderr.truncated,
            spill=tuple(capture.spill for capture in (stdout, stderr) if capture.spill is not None),
            drained=self._drained(report, started=started),
            leader_exit_at=date_of(report.exit_at) if started else None,
            # Of a pid namespace nothing is left: what is still listed is on its way out with the init of it.
            leftovers=() if self._has_pidns else still_running(report.leftovers),
            kept=still_running(report.kept, StillRunningKind.JOB),
            unreaped=still_running(report.left),
        )

    def _containment(self, report: Report) -> Containment:
        if not report.proven or self.no_keeper is not None:
            return Containment.BEST_EFFORT
        if self._has_pidns:
            return Containment.PIDNS
        return Containment.CGROUP if self.enforced else Containment.KEEPER

    @property
    def _has_pidns(self) -> bool:
        return self.status is not None

    def _drained(self, report: Report, *, started: bool) -> Drained:
        if not started:
            return Drained.NONE
        if report.drained_out or not all(reader.eof for reader in self.readers):
            return Drained.DEADLINE
        return Drained.EOF

    def _missing(self, report: Report) -> list[str]:
        missing = []
        if report.keeper_lost and report.proven:
            missing.append("supervision: the keeper was lost; its warden ended what it left, the exit status is unknown")
        elif report.keeper_lost:
            missing.append("kill_tree: keeper and warden were lost; the call's processes were looked for by session and marker")
        elif report.cause == "lost" and self.released:
            missing.append("supervision: the warden was lost, so the keeper ended the call")
        elif self.no_keeper is not None:
            text = "processes are found by group, parent and marker, and that none is left is no proof"
            missing.append(f"kill_tree: best_effort because {self.no_keeper}; {text}")
        if self.plan.wrapping is not None:
            missing += self.plan.wrapping.missing
        elif self.plan.clear_env or None in self.plan.env.values():
            missing.append(ENVIRONMENT_READABLE)
        return missing + [reader.capture.spill_error for reader in self.readers if reader.capture.spill_error]
