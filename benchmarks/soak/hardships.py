"""Hardships between two phases of load: the host forks, runs out of descriptors, of processes. All bounded and undone."""

import contextlib
import os
import resource
import time
from collections.abc import Iterator

from benchmarks.usage import open_fds

FORK_LIFETIME = 0.2
"""Seconds that a forked copy of the host lives, holding copies of everything."""


def fork_host() -> int:
    """Fork; the child only sleeps and leaves. Returns its pid, for `reap`."""
    pid = os.fork()
    if not pid:
        try:
            time.sleep(FORK_LIFETIME)
        finally:
            os._exit(0)
    return pid


def reap(pid: int) -> None:
    """Wait for a forked copy."""
    os.waitpid(pid, 0)


@contextlib.contextmanager
def few_descriptors(spare: int) -> Iterator[None]:
    """Let this process open `spare` more descriptors and no more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_fds() + spare, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def processes_can_be_limited() -> bool:
    """RLIMIT_NPROC does not hold for root (setrlimit(2))."""
    return os.geteuid() != 0


@contextlib.contextmanager
def few_processes() -> Iterator[None]:
    """Let this user start no more processes from here."""
    before = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, before)
