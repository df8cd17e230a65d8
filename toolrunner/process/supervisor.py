"""Host side of supervised processes (being filled in)."""

from dataclasses import dataclass
from typing import final

from toolrunner.facts import Containment
from toolrunner.process.ending import SpawnErrorKind, SpawnRefused
from toolrunner.process.plan import LaunchPlan
from toolrunner.process.prepared import Observer, Prepared, Sink


@dataclass(frozen=True, slots=True)
class Abilities:
    """What this host can promise about processes, for `doctor`: the containment, why not a stronger one, and the limits."""

    containment: Containment
    python: str | None
    reasons: tuple[str, ...]
    max_processes: int


@final
class Supervisor:
    """Starts processes and owns them until they are proven to be gone. Shares the one warden of this host process."""

    def __init__(self, *, python: str | None = None, containment: Containment | None = None) -> None:
        self.python = python
        self.containment = containment

    async def prepare(
        self, plan: LaunchPlan, *, dirfd: int | None = None, on_output: Observer | None = None, sink: Sink | None = None
    ) -> Prepared:
        """Make the process and hold it at its gate.

        Raises:
            SpawnRefused: nothing was released, and why.
        """
        raise SpawnRefused(SpawnErrorKind.SETUP, "not built yet")

    async def abilities(self) -> Abilities:
        """Try what this host can do (starts the warden if need be)."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Stop and await every process that is still owned; end the warden if this was its last user. Idempotent."""
