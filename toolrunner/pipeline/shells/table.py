"""The living shells of one runner: started when they are first needed, ended when the runner closes.

State: the shell of each tool, and why the last one is gone. Changed by `ready` and by the shells' ends, on the runner's loop.
Their tasks have a root of their own: the runner waits for its calls first, and then ends what no call needs any more.
"""

import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from typing import final

from toolrunner.pipeline.shells.line import STATUS, STDERR, STDOUT
from toolrunner.pipeline.shells.shell import Shell
from toolrunner.process import EndCause, LaunchPlan, Prepared, ProcessEnd, SpawnErrorKind, SpawnRefused
from toolrunner.tasks import TaskRoot
from toolrunner.tools import ShellSpec

STARTER = f"""
import os, signal, sys
script, status = (os.dup2(int(fd), high) for fd, high in zip(sys.argv[1:3], (250, 251)))
for target, fd in ((0, script), ({STATUS}, status), ({STDOUT}, 1), ({STDERR}, 2)):
    os.dup2(fd, target)
os.closerange(7, 65536)
os.closerange(3, 4)
for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(ignored, signal.SIG_DFL)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts the descriptors where the shell's script expects them and becomes the shell.

Python, since without a keeper descriptors keep their numbers, and a POSIX shell redirects single digits only. What Python ignores
would be ignored in the shell and all it starts.
"""


_RESTARTED = "This call ran in a new shell, because the last one {how}: folder, variables and functions are those of the start."


@final
class Shells:
    """One per runner."""

    def __init__(self, prepare_process: Callable[..., Awaitable[Prepared]]) -> None:
        self._prepare = prepare_process
        self._shells: dict[str, Shell] = {}
        self._gone: dict[str, ProcessEnd] = {}
        self._root = TaskRoot()

    async def ready(self, spec: ShellSpec, kill_after: float) -> Shell:
        """The living shell of this tool, or a new one at its gate. Raises SpawnRefused."""
        shell = self._shells.get(spec.id)
        if shell is None:
            shell = self._shells[spec.id] = await self._made(spec, kill_after)
        return shell

    def keep(self, spec: ShellSpec, shell: Shell) -> str | None:
        """A shell was released: look after it until it is over. Returns what is to be told of the one before it, if any."""
        before = self._gone.pop(spec.id, None)

        async def live() -> None:
            try:
                await shell.live()
            finally:
                self._shells.pop(spec.id, None)
                gone = shell.end if shell.end is not None and shell.end.started else before
                if gone is not None:
                    self._gone[spec.id] = gone

        self._root.spawn(live, "persistent shell")
        return None if before is None else _RESTARTED.format(how=_how(before))

    async def drop(self, spec: ShellSpec, shell: Shell) -> None:
        """A shell whose first line will not come: give it up."""
        if not shell.released:
            self._shells.pop(spec.id, None)
            await shell.abandon()

    async def aclose(self) -> None:
        """End all shells and wait for them."""
        for shell in self._shells.values():
            shell.stop()
        await self._root.wait_empty()

    async def _made(self, spec: ShellSpec, kill_after: float) -> Shell:
        program = _program(spec)
        try:
            ends = [*os.pipe(), *os.pipe()]
        except OSError as error:
            raise SpawnRefused.from_os("pipes for the shell", error) from error
        theirs_script, script, status, theirs_status = ends
        os.set_blocking(script, False)
        box: list[Shell] = []

        def feed(stream: str, data: bytes) -> None:
            if box:
                box[0].feed(stream, data)

        try:
            prepared = await self._prepare(_plan(spec, program, (theirs_script, theirs_status), kill_after), on_output=feed)
        except BaseException:
            for fd in ends:
                os.close(fd)
            raise
        box.append(Shell(prepared, script, status, (theirs_script, theirs_status)))
        return box[0]


def _program(spec: ShellSpec) -> str:
    found = shutil.which(spec.program, path=spec.env.get("PATH") or os.environ.get("PATH"))
    if found is None:
        raise SpawnRefused(SpawnErrorKind.NOT_FOUND, f"{spec.program!r}: no such program, or none that can be run")
    if not sys.executable or getattr(sys, "frozen", False):
        raise SpawnRefused(SpawnErrorKind.SETUP, "there is no Python interpreter that a shell could be started with")
    return found


def _plan(spec: ShellSpec, program: str, passed: tuple[int, int], kill_after: float) -> LaunchPlan:
    return LaunchPlan(
        argv=(sys.executable, "-I", "-S", "-c", STARTER, *map(str, passed), program),
        env=dict(spec.env),
        cwd=spec.cwd,
        output_limit=0,  # what it says belongs to its lines
        kill_after=kill_after,
        pass_fds={fd: fd for fd in passed},
    )


def _how(end: ProcessEnd) -> str:
    match end.cause:
        case EndCause.STOPPED | EndCause.TIMED_OUT:
            return "was ended"
        case EndCause.KEEPER_LOST:
            return "lost its supervisor"
    if end.facts.signal is not None:
        return f"was killed by {end.facts.signal}"
    return f"had left with exit status {end.facts.exit_code}"
