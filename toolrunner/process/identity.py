"""Which process is which. A number alone is never trusted: boot, pid namespace, pid and start time together are. No state."""

import functools
import os

import psutil

from toolrunner.facts import ProcessIdentity
from toolrunner.process.keeping.system import stat


@functools.cache
def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        pass
    try:  # not Linux: the time of boot tells boots apart as well
        return str(int(psutil.boot_time()))
    except (psutil.Error, OSError, RuntimeError):  # Linux without /proc; RuntimeError: a /proc/stat without btime
        return ""


def _pid_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def starttime_of(pid: int) -> int:
    """Clock ticks since boot at which this process began; on other systems centiseconds since the epoch. 0 = it is gone."""
    facts = stat(pid)
    if facts is not None:
        return facts.starttime
    try:
        return int(psutil.Process(pid).create_time() * 100)
    except psutil.Error:
        return 0


def identity_of(pid: int, starttime: int) -> ProcessIdentity:
    """The identity of a process of this boot and pid namespace."""
    return ProcessIdentity(pid=pid, starttime=starttime, boot_id=_boot_id(), pid_namespace=_pid_namespace())


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether this very process still runs here. A zombie does not run."""
    if identity.boot_id != _boot_id() or identity.pid_namespace != _pid_namespace():
        return False
    try:
        running = psutil.Process(identity.pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.Error:
        return False
    return running and starttime_of(identity.pid) == identity.starttime
