"""Which process is which, and finding a call's processes without a keeper: by session and by environment marker.

Host side, through psutil, so it works wherever psutil does. A number alone is never trusted: pid and start time together are.
"""

import functools
import os
import signal
import time

import anyio
import psutil

from toolrunner.facts import ProcessIdentity
from toolrunner.process.keeping.system import owner, stat
from toolrunner.process.launch import MARKER

Listing = list[tuple[int, int, int, str, str]]

SCAN_PAUSE = 0.02
"""Seconds between two scans. One clean scan proves little: a program that forks and exits in a loop can slip through it."""

CLEAN_SCANS = 2


@functools.cache
def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:  # not Linux: the time of boot tells boots apart as well
        return str(int(psutil.boot_time()))


def _pid_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def identity_of(pid: int, starttime: int) -> ProcessIdentity:
    """The identity of a process of this boot and pid namespace; `starttime` in clock ticks since boot."""
    return ProcessIdentity(pid=pid, starttime=starttime, boot_id=_boot_id(), pid_namespace=_pid_namespace())


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether this very process still runs (a zombie does not)."""
    if identity.boot_id != _boot_id() or identity.pid_namespace != _pid_namespace():
        return False
    facts = stat(identity.pid)
    return facts is not None and facts.starttime == identity.starttime and facts.state not in "ZX"


def marked(mark: str, session: int | None) -> list[int]:
    """Pids that carry the call's marker in their environment, or belong to its session. Zombies are left out."""
    wanted = f"{MARKER}={mark}".encode()
    own = os.getpid()
    found = []
    for pid in psutil.pids():
        facts = stat(pid)
        if pid == own or facts is None or facts.state in "ZX":
            continue
        if (session is not None and facts.session == session) or wanted in _environment(pid):
            found.append(pid)
    return found


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def _kill_verified(pid: int) -> str:
    """SIGKILL through a pidfd opened before the last look at who it is; "EPERM" when we may not."""
    facts = stat(pid)
    if facts is None:
        return ""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return ""
    try:
        again = stat(pid)
        if again is not None and again.starttime == facts.starttime:
            signal.pidfd_send_signal(fd, signal.SIGKILL)
    except PermissionError:
        return "EPERM"
    except OSError:
        return ""
    finally:
        os.close(fd)
    return ""


async def survivors_of(identity: ProcessIdentity | None, mark: str, bound: float) -> Listing:
    """Kill what is found of a call until nothing is, at most for `bound` seconds; what is left then. Empty proves nothing."""
    until = time.monotonic() + bound
    clean = 0
    while True:
        found = marked(mark, identity.pid if identity is not None else None)
        errors = {pid: _kill_verified(pid) for pid in found}
        clean = 0 if found else clean + 1
        if clean >= CLEAN_SCANS:
            return []
        if time.monotonic() >= until:
            facts = ((pid, stat(pid)) for pid in found)
            return [(pid, owner(pid), f.starttime, f.comm.decode("utf-8", "replace"), errors[pid]) for pid, f in facts if f]
        await anyio.sleep(SCAN_PAUSE)


