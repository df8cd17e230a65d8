"""processkit-py: a group of its own kind (cgroup v2 where it can, else a POSIX group), killed as a unit. Extra `bench`."""

import importlib.util
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.stopping import Running
from benchmarks.victims.shapes import Argv

INSTALLED = importlib.util.find_spec("processkit") is not None


class ProcesskitGroup:
    """`kill_all`, then `ashutdown`: its fastest way, without a grace period."""

    name = "processkit-py"

    @asynccontextmanager
    async def start(self, commands: Sequence[Argv]) -> AsyncIterator[Running]:
        import processkit

        async with processkit.ProcessGroup() as group:
            for argv in commands:
                await group.astart(processkit.Command(argv[0], list(argv[1:])).stdout("null").stderr("null"))
            yield _Group(group)


class _Group:
    def __init__(self, group: Any) -> None:
        self._group = group

    async def stop(self) -> bool:
        self._group.kill_all()
        await self._group.ashutdown()
        return False
