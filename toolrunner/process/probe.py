"""What this host can promise about processes, for `doctor` and for limits. Reads only."""

from dataclasses import dataclass
from typing import final

from toolrunner.facts import Containment

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

FDS_PER_PROCESS = 12
"""Descriptors of the host per process call: 4 while it runs, 11 while it is prepared."""

FDS_SPARED = 64
"""Descriptors left to the rest of the host."""

NO_LIMIT = 1024
"""Calls at once where descriptors are not limited: more would only wait for the processors."""


@final
@dataclass(frozen=True, slots=True)
class Abilities:
    """What `Supervisor.abilities` found: the containment calls get, the warden's interpreter, why not better, and a limit."""

    containment: Containment
    python: str | None
    reasons: tuple[str, ...]
    max_processes: int


def processes_at_once() -> int:
    """Process calls at once that the descriptor limit allows, as it is now."""
    if resource is None:
        return NO_LIMIT
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return NO_LIMIT
    return max(1, min(NO_LIMIT, (soft - FDS_SPARED) // FDS_PER_PROCESS))
