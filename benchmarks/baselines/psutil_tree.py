"""psutil: list the children recursively, kill each, wait_procs. The recipe of its documentation."""

import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import psutil

from benchmarks.stopping import SETTLE, Running
from benchmarks.victims.shapes import Argv


class PsutilTree:
    """Blocks its thread, as the recipe does.

    The wait is bounded by SETTLE: orphans that were killed are zombies until the init of the machine reaps them, maybe late.
    """

    name = "psutil tree kill + wait_procs"

    @asynccontextmanager
    async def start(self, commands: Sequence[Argv]) -> AsyncIterator[Running]:
        null = subprocess.DEVNULL
        made = [subprocess.Popen(argv, stdin=null, stdout=null, stderr=null, start_new_session=True) for argv in commands]
        try:
            yield _Trees(made)
        finally:
            for process in made:
                process.wait()


class _Trees:
    def __init__(self, made: Sequence[subprocess.Popen[bytes]]) -> None:
        self._made = made

    async def stop(self) -> bool:
        victims: list[psutil.Process] = []
        for process in self._made:
            with suppress(psutil.NoSuchProcess):
                root = psutil.Process(process.pid)
                victims += [*root.children(recursive=True), root]
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                victim.kill()
        psutil.wait_procs(victims, timeout=SETTLE)
        return False
