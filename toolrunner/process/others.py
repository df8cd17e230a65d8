"""The processes that the commands of a living shell left: found below its keeper, or from outside without one, and ended.

While the leader lives, nobody says ECHILD: who forks and exits between two looks is not seen. So the end of the others is never a
proof here, only the end of the whole process is. No state.
"""

import signal
import time
from dataclasses import dataclass
from typing import final

import anyio
import psutil

from toolrunner.facts import ProcessIdentity
from toolrunner.process.identity import identity_of, is_alive, starttime_of
from toolrunner.process.keeping.messages import DRAIN_BOUND, REAP_BOUND
from toolrunner.process.keeping.system import Kernel, stat
from toolrunner.process.launch import MARKER
from toolrunner.process.report import Listing
from toolrunner.process.survey import CLEAN_SCANS, SCAN_PAUSE, Quarry, describe, send, survey


@final
@dataclass(frozen=True, slots=True)
class Company:
    """A leader and who answers for its orphans: its keeper, or nobody. Taken once, while the leader is known to be well."""

    leader: ProcessIdentity
    keeper: ProcessIdentity | None
    mark: str

    @classmethod
    def of(cls, leader: ProcessIdentity, *, kept: bool) -> "Company":
        """The company of a process; `kept` = its parent is its keeper."""
        facts = stat(leader.pid)
        keeper = identity_of(facts.ppid, starttime_of(facts.ppid)) if kept and facts is not None else None
        try:
            mark = psutil.Process(leader.pid).environ().get(MARKER, "")
        except psutil.Error:
            mark = ""
        return cls(leader, keeper, mark)

    def others(self) -> list[psutil.Process]:
        """Everybody but the leader who is alive, as far as can be seen now."""
        if self.keeper is None or not is_alive(self.keeper):
            # Never the parent of a leader whose keeper died: that is the warden, and its children are other calls' keepers.
            return [one for one in survey(Quarry(self.mark or "-", self.leader)) if one.pid != self.leader.pid]
        kernel = Kernel()
        waiting = [*kernel.children(self.keeper.pid)]
        found: list[psutil.Process] = []
        seen = set(waiting)
        while waiting:
            pid = waiting.pop()
            below = [child for child in kernel.children(pid) if child not in seen]
            seen.update(below)
            waiting += below
            if pid != self.leader.pid:
                found += _alive(pid)
        return found


def _alive(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [] if process.status() == psutil.STATUS_ZOMBIE else [process]
    except psutil.Error:  # gone meanwhile
        return []


async def end_others(company: Company) -> tuple[Listing, Listing]:
    """Give the others D to go by themselves, then kill them until none is seen, for R at most: who they were, and who is left."""
    until = time.monotonic() + DRAIN_BOUND
    while (found := company.others()) and time.monotonic() < until:  # noqa: ASYNC110 - what leaves by itself tells nobody
        await anyio.sleep(SCAN_PAUSE)
    leftovers: dict[tuple[int, int], tuple[int, int, int, str, str]] = {}
    clean = 0 if found else CLEAN_SCANS
    until = time.monotonic() + REAP_BOUND
    while clean < CLEAN_SCANS:
        errors = {}
        for process in found:
            entry = describe(process)
            leftovers.setdefault((entry[0], entry[2]), entry)  # pid and start time
            errors[process.pid] = send(process, signal.SIGKILL)
        if found and time.monotonic() >= until:
            return [*leftovers.values()], [describe(process, errors[process.pid]) for process in found]
        await anyio.sleep(SCAN_PAUSE / 4)
        found = company.others()
        clean = 0 if found else clean + 1
    return [*leftovers.values()], []
