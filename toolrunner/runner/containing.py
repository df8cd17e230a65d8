"""Every process of a runner goes through here when the runner has a sandbox. State: none of its own."""

import os
from typing import final

from toolrunner.process import LaunchPlan, Observer, Prepared, Processes, Sink
from toolrunner.sandbox import Sandbox

Containing = Sandbox | str | os.PathLike[str] | None
"""How a sandbox is named: made already, by its profile's name or file, or none."""


def sandbox_of(given: Containing) -> Sandbox | None:
    """The sandbox that is meant. Raises ProfileError."""
    return given if given is None or isinstance(given, Sandbox) else Sandbox(given)


@final
class ContainedProcesses:
    """`Processes` of which each is contained; those of a tool with a sandbox of its own by both."""

    def __init__(self, inner: Processes, sandbox: Sandbox) -> None:
        self._inner, self._sandbox = inner, sandbox

    async def prepare(
        self, plan: LaunchPlan, *, dirfd: int | None = None, on_output: Observer | None = None, sink: Sink | None = None
    ) -> Prepared:
        """See `Processes.prepare`. Raises `SpawnRefused` also when the process cannot be contained."""
        if plan.wrapping is None:
            plan = await self._sandbox.wrap(plan)
        return await self._inner.prepare(plan, dirfd=dirfd, on_output=on_output, sink=sink)

    async def aclose(self) -> None:
        """See `Processes.aclose`."""
        await self._inner.aclose()
