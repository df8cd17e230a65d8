"""What this host process is now: credentials, namespaces, limits, umask. No state; read afresh for every launch.

A warden keeps what its host was when it started. Where a request can carry the present value (umask, limits, environment,
working directory) it does; where it cannot (ids, capabilities, namespaces), a host that changed gets a new warden.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from toolrunner.process.keeping.system import read_file

try:
    import resource

    _LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
except ImportError:  # Windows: import must work, process tools refuse
    _LIMITS = []

_STATUS = (
    b"Uid",
    b"Gid",
    b"Groups",
    b"CapInh",
    b"CapPrm",
    b"CapEff",
    b"CapBnd",
    b"CapAmb",
    b"NoNewPrivs",
    b"Seccomp",
    b"Cpus_allowed",
)
_NAMESPACES = (b"mnt", b"net", b"pid_for_children", b"user", b"uts", b"ipc", b"cgroup", b"time_for_children")


@final
@dataclass(frozen=True, slots=True)
class Standing:
    """`fixed` is what only a new warden can follow; `umask` travels with the request."""

    fixed: tuple[bytes, ...]
    umask: int


def standing() -> Standing:
    """Look at the calling thread. Raises OSError where there is no Linux /proc."""
    status = read_file("/proc/thread-self/status")
    fixed = [_value(status, name) for name in _STATUS]
    for name in _NAMESPACES:
        try:
            fixed.append(os.readlink(b"/proc/thread-self/ns/" + name))
        except OSError:  # a kernel without that kind
            fixed.append(b"")
    return Standing(tuple(fixed), int(_value(status, b"Umask") or b"022", 8))


def _value(status: bytes, name: bytes) -> bytes:
    """One line's value; empty where this kernel has no such line. (None of them is the first one.)"""
    begin = status.find(b"\n" + name + b":")
    return status[begin + len(name) + 2 : status.find(b"\n", begin + 1)] if begin >= 0 else b""


def limits(lower: Mapping[int, int]) -> str:
    """The resource limits as the request carries them: `number:soft:hard`, comma-separated. `lower` are bounds for some."""
    return ",".join(f"{which}:{soft}:{hard}" for which in _LIMITS for soft, hard in [_limit(which, lower.get(which))])


def _limit(which: int, most: int | None) -> tuple[int, int]:
    soft, hard = resource.getrlimit(which)
    if most is None:
        return soft, hard
    hard = most if hard == resource.RLIM_INFINITY else min(hard, most)  # infinity is -1, and less than every number
    return hard if soft == resource.RLIM_INFINITY else min(soft, hard), hard
