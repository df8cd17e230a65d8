"""Where and when: this boot, this pid namespace, this process, and the clock that nobody can set back. No state.

Order is a record's `seq`. Wall time is for display. CLOCK_BOOTTIME (time_namespaces(7), clock_gettime(2)) counts through suspends
and belongs to one boot, so it is compared only between openings of the same `boot_id`.
"""

import os
import platform
import time
from dataclasses import dataclass
from datetime import datetime
from typing import final

from toolrunner.facts import ProcessIdentity
from toolrunner.process.identity import identity_of, starttime_of

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""macOS has no such name; its CLOCK_MONOTONIC counts through sleep."""


def boottime() -> float:
    """Seconds since boot, suspends included."""
    return time.clock_gettime(_BOOTTIME)


@final
@dataclass(frozen=True, slots=True)
class Opening:
    """One time that an owner opened the journal. Records from `first_seq` on, up to the next opening's, are its own.

    `opened_at` is wall time, `boottime` seconds of CLOCK_BOOTTIME at the same moment: the two together date the records.
    """

    number: int
    first_seq: int
    opened_at: datetime
    boottime: float
    host: str
    owner: ProcessIdentity
    """The owning process, with boot id and pid namespace."""


def this_process() -> ProcessIdentity:
    """Who opens it."""
    return identity_of(os.getpid(), starttime_of(os.getpid()))


def this_host() -> str:
    """The name of this machine, for readers; it is never compared alone."""
    return platform.node()
