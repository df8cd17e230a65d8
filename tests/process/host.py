"""A host process of its own for a test: a Python script that uses a `Supervisor`, and that can be killed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

from plain_user import PlainUser

import toolrunner.process

PREAMBLE = """
import os, signal, sys, time
import anyio
from toolrunner.facts import Containment
from toolrunner.process import *

def say(*words):
    print(*words, flush=True)

async def run(supervisor, *argv, on_output=None, **plan):
    prepared = await supervisor.prepare(LaunchPlan(argv, **plan), on_output=on_output)
    prepared.go()
    return await prepared.wait()

async def shell(supervisor, script, **more):
    return await run(supervisor, 'bash', '-c', script, **more)
"""

MAIN = """
async def host():
    supervisor = Supervisor(containment=Containment.KEEPER)
    try:
        await main(supervisor)
    finally:
        await supervisor.aclose()

anyio.run(host)
"""


def environment() -> dict[str, str]:
    """Ours, with the package under test importable."""
    package = Path(toolrunner.process.__file__).parents[2]
    return {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}


@final
class Host:
    """A running host script. Use `host_running`."""

    def __init__(self, argv: list[str], env: dict[str, str], cwd: Path) -> None:
        self.process = subprocess.Popen(argv, env=env, cwd=cwd, stdout=subprocess.PIPE, text=True, start_new_session=True)

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        """The next line it says, "" when it ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def rest(self, bound: float = 60) -> tuple[int, str]:
        """Wait for its end: exit status and everything else it said."""
        out, _ = self.process.communicate(timeout=bound)
        return self.process.returncode, out


@contextmanager
def host_running(folder: Path, body: str, *, user: PlainUser | None = None, wrap: tuple[str, ...] = ()) -> Iterator[Host]:
    """Start `body` (which defines `async def main(supervisor)`) as a process; it is killed if it still runs at the end.

    `wrap` is put before the command (`unshare ...`). A plain user's script lies in that user's home.
    """
    home = user.home if user is not None else folder
    script = home / "host.py"
    script.write_text(PREAMBLE + body + MAIN)
    script.chmod(0o644)
    argv = [*wrap, sys.executable, str(script)]
    env = environment()
    if user is not None:
        argv, env = user.argv(*argv), {**user.environment, "PYTHONPATH": env["PYTHONPATH"]}
    host = Host(argv, env, home)
    try:
        yield host
    finally:
        host.process.kill()
        host.process.wait()
        if host.process.stdout is not None:
            host.process.stdout.close()
