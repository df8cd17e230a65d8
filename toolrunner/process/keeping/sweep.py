"""SIGKILL every direct child, reap, repeat until the kernel says ECHILD: then nobody of the call is left, whatever it did.

Grandchildren become direct children as their parents die, because the sweeper is their subreaper. No set of pids is kept from
one round to the next: a number is signalled only while it is that of an own unreaped child. (Freezing everything before the
kill was tried: it hung or took seconds on programs that fork and exit in a loop, and then signals numbers that are stale.)
"""

import signal
import time
from collections.abc import Callable

from toolrunner.process.keeping.system import Kernel, owner, stat

ROUND = 0.001
"""Seconds between rounds at most. A death wakes the sweeper at once; this is for a SIGCHLD that was merged with another."""


class Swept:
    """Outcome: `left` is empty as a proof, else (pid, uid, starttime, name, error) of what SIGKILL has not ended in time."""

    def __init__(self) -> None:
        self.left: list[tuple[int, int, int, str, str]] = []


def describe(pid: int, error: str = "") -> tuple[int, int, int, str, str]:
    """One process for a report."""
    facts = stat(pid)
    if facts is None:
        return pid, -1, 0, "", error
    return pid, owner(pid), facts.starttime, facts.comm.decode("utf-8", "replace"), error


def reap_all(kernel: Kernel, reaped: Callable[[int, int], None]) -> bool:
    """Reap everything that is dead. True when no child is left at all (ECHILD)."""
    try:
        while True:
            pid, status = kernel.reap()
            if pid == 0:
                return False
            reaped(pid, status)
    except ChildProcessError:
        return True


def sweep(
    kernel: Kernel,
    until: float,
    pause: Callable[[float], None],
    reaped: Callable[[int, int], None],
    spare: Callable[[int], bool] | None = None,
) -> Swept:
    """End all children but those `spare` names, until the monotonic time `until`. `pause` sleeps, less when a child dies.

    With spared children (a warden's keepers) ECHILD never comes; that the kernel lists no other child is the proof then.
    """
    result = Swept()
    if reap_all(kernel, reaped):  # the usual end: everyone was gone before
        return result
    while True:
        victims = [pid for pid in kernel.children() if spare is None or not spare(pid)]
        if spare is not None and not victims:
            return result
        denied = kill_each(kernel, victims)
        if reap_all(kernel, reaped):
            return result
        if time.monotonic() >= until:
            remaining = [pid for pid in kernel.children() if spare is None or not spare(pid)]
            result.left = [describe(pid, denied.get(pid, "")) for pid in remaining]
            return result
        pause(ROUND)


def kill_each(kernel: Kernel, victims: list[int]) -> dict[int, str]:
    """SIGKILL to each; those that we may not signal, with the error's name."""
    denied: dict[int, str] = {}
    for pid in victims:
        try:
            kernel.kill(pid, signal.SIGKILL)
        except PermissionError:  # it runs as someone else: EPERM never means gone
            denied[pid] = "EPERM"
        except ProcessLookupError:
            continue
    return denied
