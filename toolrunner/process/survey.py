"""Finding a call's processes from outside, where no keeper answers for them: by group, session, parent and environment marker.

Through psutil, on every platform it knows. It finds what can be found and proves nothing: a process that left group, session
and parent and cleared its environment is invisible here. No state.
"""

import os
import signal
import time
from dataclasses import dataclass
from typing import final

import anyio
import psutil

from toolrunner.facts import ProcessIdentity
from toolrunner.process.identity import starttime_of
from toolrunner.process.launch import MARKER

Listing = list[tuple[int, int, int, str, str]]

SCAN_PAUSE = 0.02
"""Seconds between two scans. One clean scan proves little: a program that forks and exits in a loop can slip through it."""

CLEAN_SCANS = 2
"""Scans in a row that must find nobody."""

FREEZE_ROUNDS = 10
"""Rounds of stopping newcomers before the kill; a tree that still grows then is killed as it is, and looked at again."""


@final
@dataclass(frozen=True, slots=True)
class Quarry:
    """What is looked for: the call's mark, and its leader, whose pid is also the number of its group and session."""

    mark: str
    identity: ProcessIdentity | None

    def leader(self) -> int | None:
        """The leader's number as long as it is not another process's. (While members of its group live, the kernel keeps it.)"""
        if self.identity is None or starttime_of(self.identity.pid) not in (0, self.identity.starttime):
            return None
        return self.identity.pid


def survey(quarry: Quarry) -> list[psutil.Process]:
    """Everything of the call that is alive; zombies and this process are left out."""
    found: dict[int, psutil.Process] = {}
    parents: dict[int, list[psutil.Process]] = {}
    own, leader = os.getpid(), quarry.leader()
    for process in listed() or ():
        if process.pid == own or process.info["status"] == psutil.STATUS_ZOMBIE:
            continue
        parents.setdefault(process.info["ppid"] or 0, []).append(process)
        if _belongs(process, quarry.mark, leader):
            found[process.pid] = process
    waiting = [*found, *([leader] if leader is not None else [])]
    while waiting:  # whatever descends from one that belongs, belongs
        for process in parents.get(waiting.pop(), []):
            if process.pid not in found:
                found[process.pid] = process
                waiting.append(process.pid)
    return list(found.values())


def listed() -> list[psutil.Process] | None:
    """Every process there is; None where none can be listed, as without /proc."""
    try:
        return list(psutil.process_iter(["ppid", "status"]))
    except (psutil.Error, OSError, IndexError):  # IndexError: psutil's word for an empty /proc
        return None


def _belongs(process: psutil.Process, mark: str, leader: int | None) -> bool:
    try:
        if leader is not None and leader in (process.pid, os.getsid(process.pid), os.getpgid(process.pid)):
            return True
        return process.environ().get(MARKER) == mark
    except (psutil.Error, OSError):  # gone meanwhile, or someone else's
        return False


def send(process: psutil.Process, number: int) -> str:
    """Signal a process whose identity is checked after it was opened; "EPERM" when we may not, "" otherwise."""
    try:
        fd = os.pidfd_open(process.pid)
    except (OSError, AttributeError):  # no pidfds here: psutil compares the start time just before
        return _send_plainly(process, number)
    try:
        if process.is_running():
            signal.pidfd_send_signal(fd, number)
    except PermissionError:
        return "EPERM"
    except ProcessLookupError:
        pass
    finally:
        os.close(fd)
    return ""


def _send_plainly(process: psutil.Process, number: int) -> str:
    try:
        process.send_signal(number)
    except psutil.AccessDenied:
        return "EPERM"
    except psutil.Error:
        pass
    return ""


def kill_round(quarry: Quarry) -> dict[int, str]:
    """Stop everything found until nothing new appears, then kill it. The pids found, each with what the kill said."""
    frozen: dict[int, psutil.Process] = {}
    for _ in range(FREEZE_ROUNDS):
        fresh = [process for process in survey(quarry) if process.pid not in frozen]
        if not fresh:
            break
        for process in fresh:
            frozen[process.pid] = process
            send(process, signal.SIGSTOP)
    return {pid: send(process, signal.SIGKILL) for pid, process in frozen.items()}


def describe(process: psutil.Process, error: str = "") -> tuple[int, int, int, str, str]:
    """pid, uid, start time (clock ticks since boot), name, error: one entry of a report."""
    try:
        with process.oneshot():
            return process.pid, process.uids().real, starttime_of(process.pid), process.name(), error
    except psutil.Error:
        return process.pid, -1, 0, "", error


async def end_all(quarry: Quarry, bound: float) -> Listing:
    """Kill what is found of a call until nothing is, for `bound` seconds at most; what is left then. Empty proves nothing."""
    until = time.monotonic() + bound
    clean = 0
    while True:
        errors = kill_round(quarry)
        clean = 0 if errors else clean + 1
        if clean >= CLEAN_SCANS:
            return []
        if time.monotonic() >= until:
            return [describe(process, errors.get(process.pid, "")) for process in survey(quarry)]
        await anyio.sleep(SCAN_PAUSE)
