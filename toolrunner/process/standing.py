"""What this host process is now: credentials, namespaces, limits, umask. No state; read afresh for every launch.

A warden keeps what its host was when it started. Where a request can carry the present value (umask, limits, environment,
working directory) it does; where it cannot (ids, capabilities, namespaces), a host that changed gets a new warden.
"""

import os
from dataclasses import dataclass
from typing import final

try:
    import resource

    _LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
except ImportError:  # Windows: import must work, process tools refuse
    _LIMITS = []

_STATUS = ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Cpus_allowed")
_NAMESPACES = ("mnt", "net", "pid_for_children", "user", "uts", "ipc", "cgroup", "time_for_children")


@final
@dataclass(frozen=True, slots=True)
class Standing:
    """`fixed` is what only a new warden can follow; `umask` travels with the request."""

    fixed: tuple[str, ...]
    umask: int


def standing() -> Standing:
    """Look at the calling thread. Raises OSError where there is no Linux /proc."""
    with open("/proc/thread-self/status", encoding="utf-8", errors="replace") as file:
        lines = dict(line.rstrip("\n").partition(":")[::2] for line in file)
    fixed = [lines.get(name, "") for name in _STATUS]
    for name in _NAMESPACES:
        try:
            fixed.append(os.readlink(f"/proc/thread-self/ns/{name}"))
        except OSError:  # a kernel without that kind
            fixed.append("")
    return Standing(tuple(fixed), int(lines.get("Umask", "022"), 8))


def limits() -> str:
    """The resource limits as the request carries them: `number:soft:hard`, comma-separated."""
    return ",".join(f"{which}:{soft}:{hard}" for which in _LIMITS for soft, hard in [resource.getrlimit(which)])
