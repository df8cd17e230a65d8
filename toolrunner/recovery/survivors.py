"""Survivors: processes of lost calls and jobs that may have outlived their host, looked up by identity and, when asked, ended.

No state. A number alone is never trusted: only while the leader itself is there, with its start time, do group, session and
descent tell who belongs to it. A leader that is gone leaves nothing to go by, and nobody is guessed at.
"""

import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import final

import anyio
import psutil

from toolrunner.facts import ProcessIdentity, StillRunning, StillRunningKind
from toolrunner.journal.clocks import this_process
from toolrunner.process.identity import is_alive
from toolrunner.process.keeping.messages import REAP_BOUND
from toolrunner.process.launch import MARKER
from toolrunner.process.report import Listing
from toolrunner.process.survey import SCAN_PAUSE, Quarry, describe, end_all, send, survey

NO_MARK = "no mark"
"""In the place of a mark that cannot be read. No call has it: marks are hexadecimal."""


class Life(StrEnum):
    """What a look at one process said."""

    GONE = "gone"
    """A proof: the machine was started anew since, and no process lives through that."""
    NOT_FOUND = "not_found"
    """Its leader is not there any more; what it started and left elsewhere would not be seen."""
    ALIVE = "alive"
    NOT_CHECKED = "not_checked"
    """It belongs to another pid namespace or host, where its number means another process. Nothing is touched."""


@final
@dataclass(frozen=True, slots=True)
class Survivor:
    """One process as it was found. `signals` were sent to end it; `left` is what is still there, None without a proof."""

    identity: ProcessIdentity
    name: str
    life: Life
    found: tuple[StillRunning, ...] = ()
    signals: tuple[str, ...] = ()
    left: tuple[StillRunning, ...] | None = None


def look(processes: Mapping[ProcessIdentity, str], *, same_host: bool = True) -> tuple[Survivor, ...]:
    """Look each one up. `same_host` False: the journal comes from elsewhere, so its boots are not this machine's."""
    return tuple(_looked_up(identity, name, same_host=same_host) for identity, name in processes.items())


def _looked_up(identity: ProcessIdentity, name: str, *, same_host: bool) -> Survivor:
    here = this_process()
    if not same_host or not identity.boot_id or not here.boot_id:
        return Survivor(identity, name, Life.NOT_CHECKED)
    if identity.boot_id != here.boot_id:
        return Survivor(identity, name, Life.GONE, left=())
    if identity.pid_namespace != here.pid_namespace:
        return Survivor(identity, name, Life.NOT_CHECKED)
    if not is_alive(identity):
        return Survivor(identity, name, Life.NOT_FOUND)
    found = _running([describe(process) for process in survey(_quarry(identity))])
    # It may have gone between the two looks.
    return Survivor(identity, name, Life.ALIVE if found else Life.NOT_FOUND, found, left=found or None)


async def end(survivor: Survivor, grace: float) -> Survivor:
    """End one that was found alive, with all that belongs to it: SIGTERM, `grace` seconds, SIGKILL, each through a pidfd.

    What is not alive is handed back as it is. Takes `grace` and the reap bound at the most.
    """
    if survivor.life is not Life.ALIVE or not is_alive(survivor.identity):
        return survivor
    quarry = _quarry(survivor.identity)
    signals = ["SIGTERM"]
    for process in survey(quarry):
        send(process, signal.SIGTERM)
        send(process, signal.SIGCONT)  # one that is stopped could not act on it
    until = time.monotonic() + grace
    while (alive := survey(quarry)) and time.monotonic() < until:  # noqa: ASYNC110 - no child of ours: nobody tells of its end
        await anyio.sleep(SCAN_PAUSE)
    left: Listing = []
    if alive:
        signals.append("SIGKILL")
        left = await end_all(quarry, REAP_BOUND)
    return Survivor(
        survivor.identity,
        survivor.name,
        Life.ALIVE if left else Life.NOT_FOUND,
        survivor.found,
        tuple(signals),
        _running(left) or None,
    )


def _quarry(identity: ProcessIdentity) -> Quarry:
    """Who is looked for: what descends from it, is of its group or session, or carries its mark."""
    try:
        mark = psutil.Process(identity.pid).environ().get(MARKER)
    except (psutil.Error, OSError):
        mark = None
    return Quarry(mark or NO_MARK, identity)


def _running(listing: Listing) -> tuple[StillRunning, ...]:
    return tuple(
        StillRunning(what=name, kind=StillRunningKind.PROCESS, pid=pid, uid=uid if uid >= 0 else None, error=error or None)
        for pid, uid, _, name, error in listing
    )
