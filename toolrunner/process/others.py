"""The processes that the commands of a living shell left: found below its keeper, or from outside where that cannot be seen.

While the leader lives, nobody says ECHILD: who forks and exits between two looks is not seen. So the end of the others is never a
proof here, only the end of the whole process is.
"""

import signal
import time
from typing import final

import anyio
import psutil

from toolrunner.facts import ProcessIdentity
from toolrunner.process.identity import identity_of, is_alive, starttime_of
from toolrunner.process.keeping.messages import DRAIN_BOUND, REAP_BOUND
from toolrunner.process.keeping.system import Kernel, stat
from toolrunner.process.launch import MARKER
from toolrunner.process.report import Listing
from toolrunner.process.survey import SCAN_PAUSE, Quarry, describe, send, survey

LOOKS = 3
"""Looks in a row that must find nobody: a process whose parent leaves during a look moves to a place already looked at."""


@final
class Company:
    """The others of one leader. State: who the keeper is, and from the first look on who the leader is.

    Made while the leader stands at its gate: only then its parent is certainly its keeper. If the keeper dies, the parent is the
    warden, whose other children are the keepers of other calls.
    """

    def __init__(self, leader: int, *, kept: bool) -> None:
        self._pid = leader
        # None as well where /proc hides the keeper, which is not dumpable (hidepid, proc(5)).
        self._keeper = _parent(leader) if kept else None
        self._quarry: Quarry | None = None

    def others(self) -> list[psutil.Process]:
        """Everybody but the leader who is alive, as far as several looks see."""
        for _ in range(LOOKS):
            found = self._below_keeper() if self._keeper is not None and is_alive(self._keeper) else survey(self._found_by())
            others = [process for process in found if process.pid != self._pid]
            if others:
                return others
        return []

    def _found_by(self) -> Quarry:
        """Group, session and marker, read when the leader runs: before its exec /proc may hide it, too."""
        if self._quarry is None:
            try:
                mark = psutil.Process(self._pid).environ().get(MARKER)
            except psutil.Error:
                mark = None
            self._quarry = Quarry(mark or "no mark", identity_of(self._pid, starttime_of(self._pid)))
        return self._quarry

    def _below_keeper(self) -> list[psutil.Process]:
        assert self._keeper is not None
        kernel = Kernel()
        waiting = kernel.children(self._keeper.pid)
        seen = set(waiting)
        found: list[psutil.Process] = []
        while waiting:
            pid = waiting.pop()
            below = [child for child in kernel.children(pid) if child not in seen]
            seen.update(below)
            waiting += below
            found += _alive(pid) if pid != self._pid else []
        return found


def _parent(pid: int) -> ProcessIdentity | None:
    facts = stat(pid)
    parent = stat(facts.ppid) if facts is not None else None
    return identity_of(parent.pid, parent.starttime) if parent is not None else None


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
    until = time.monotonic() + REAP_BOUND
    while found:
        errors: dict[int, str] = {}
        for process in found:
            entry = describe(process)
            leftovers.setdefault((entry[0], entry[2]), entry)  # pid and start time
            errors[process.pid] = send(process, signal.SIGKILL)
        if time.monotonic() >= until:
            return [*leftovers.values()], [describe(process, errors[process.pid]) for process in found]
        await anyio.sleep(SCAN_PAUSE / 4)
        found = company.others()
    return [*leftovers.values()], []
