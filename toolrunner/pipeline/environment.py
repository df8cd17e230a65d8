"""The surroundings of a call that an approval covers and that must still be there at the moment of action.

No state. For a command: its working directory, the program it resolves to, and the names and digests of its environment.
"""

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from pydantic import JsonValue

from toolrunner.facts import GrantKey
from toolrunner.sandbox import Sandbox
from toolrunner.tools import Command, Registration


@final
@dataclass(frozen=True, slots=True)
class Environment:
    """Where a call would run. `cwd_identity` is (st_dev, st_ino) of the directory, None when it was not there.

    `cwd` is an absolute path; a relative one is relative to a directory that was removed. Empty for a body in this process.
    """

    cwd: str = ""
    cwd_identity: tuple[int, int] | None = None
    argv0: str = ""
    env: tuple[tuple[str, str], ...] = field(default=())
    profile: str = ""
    """Sandbox profiles with the digests of their files: an approval of a contained call is none of the same call let loose."""

    def gone(self) -> str | None:
        """Why the call can no longer run where it was meant to, or None. One stat, so it fits in a stretch without await."""
        if not self.cwd:
            return None
        if not Path(self.cwd).is_absolute():  # even if it is somewhere by now: what was judged was nowhere
            return f"this program's own working directory was removed, and {self.cwd!r} is relative to it"
        now = _identity(self.cwd)
        if now is None:
            return f"the working directory {self.cwd!r} is gone"
        if now != self.cwd_identity:
            return f"the working directory {self.cwd!r} is another one than before"
        return None


NOWHERE = Environment()
"""Of every body in this process; nobody can change it, so all have the same one."""


def environment_of(command: Command | None, sandboxes: Sequence[Sandbox]) -> Environment:
    """The surroundings of a command as they are now; nothing but what contains it for any other body."""
    profile = ", ".join(f"{one.name} {one.loaded.digest}" for one in sandboxes)
    if command is None:
        return Environment(profile=profile) if profile else NOWHERE
    cwd = _real(command.cwd if command.cwd is not None else os.curdir)
    path = command.env.get("PATH", os.environ.get("PATH"))
    program = command.argv[0]
    resolved = shutil.which(program, path=path) if os.sep not in program else str(Path(cwd, program))
    env = tuple(
        sorted(
            (name, "" if value is None else hashlib.sha256(os.fsencode(value)).hexdigest()) for name, value in command.env.items()
        )
    )
    return Environment(cwd, _identity(cwd) if Path(cwd).is_absolute() else None, resolved or program, env, profile)


def grant_key(registration: Registration, arguments: JsonValue, environment: Environment) -> GrantKey:
    """What an approval of this call covers, as plain strings."""
    return GrantKey(
        tool=registration.tool.name,
        registration=str(registration.id),
        arguments=json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False),
        cwd=f"{environment.cwd} {environment.cwd_identity}" if environment.cwd else "",
        env=environment.env,
        argv0=environment.argv0,
        profile=environment.profile,
    )


def _real(path: str | os.PathLike[str]) -> str:
    try:
        return os.path.realpath(path)
    except FileNotFoundError:  # getcwd(3): it is relative, and our own directory was removed
        return os.fspath(path)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        facts = Path(path).stat()
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino) if stat.S_ISDIR(facts.st_mode) else None
