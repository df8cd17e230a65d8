"""Running as a plain user although the tests run as root.

`python tests/plain_user.py COMMAND...` runs a command as nobody, with a HOME and a TMPDIR of its own; `.ci/run` repeats the
process tests that way. `PlainUser` gives one test the same: an argument list and keyword arguments for `subprocess`.
When we are not root, we are the plain user already, and both change nothing but the environment.

Root's interpreter may lie in a folder of root's own. Then the command gets a mount namespace of its own, in which
the closed folder holds the way to the interpreter and nothing else: the same interpreter, and no more rights than before.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOBODY = 65534  # the overflow uid, which every system has although its name differs
BECOME = "--become"
# $0 = the closed folder, $1 = the folder on the way to the interpreter, right below it, $2 = an empty folder; the rest is run.
OPEN_THE_WAY = """
set -e
mount --bind "$1" "$2"
mount -t tmpfs -o mode=755 tmpfs "$0"
mkdir "$1"
mount --move "$2" "$1"
shift 2
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class PlainUser:
    """A user without rights, and `home`, the only folder that is theirs."""

    uid: int
    gid: int
    home: Path

    def argv(self, *command: str) -> list[str]:
        """Return the argument list that runs `command` as this user; give it to `subprocess` together with `popen`."""
        if os.geteuid() != 0:
            return list(command)
        become = [sys.executable, "-I", __file__, BECOME, str(self.uid), str(self.gid), *command]
        closed = closed_folder(Path(sys.base_prefix))
        if closed is None:
            return become
        way = closed / Path(sys.base_prefix).relative_to(closed).parts[0]
        return ["unshare", "--mount", "sh", "-c", OPEN_THE_WAY, str(closed), str(way), str(self.home / "mount"), *become]

    @property
    def popen(self) -> dict[str, Any]:
        """Keyword arguments for `subprocess.run`, `Popen` or `anyio.run_process`."""
        return {"env": self.environment, "cwd": self.home}

    @property
    def environment(self) -> dict[str, str]:
        """Ours, without what names our own folders."""
        own = {"HOME": str(self.home), "TMPDIR": str(self.home / "tmp"), "USER": "nobody", "LOGNAME": "nobody"}
        # Neither bytecode nor the test database may be written next to files that belong to root.
        quiet = {"PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_STORAGE_DIRECTORY": str(self.home / "hypothesis")}
        return {**os.environ, **own, **quiet}


def closed_folder(path: Path) -> Path | None:
    """Name the first folder on the way to `path` that others may not enter."""
    for folder in reversed((path, *path.parents)):
        if not folder.stat().st_mode & 0o001:
            return folder
    return None


@contextmanager
def plain_user(parent: str = "/tmp") -> Iterator[PlainUser]:
    """Make the home (in `parent`, which every user may enter), and remove it with all that is in it."""
    home = Path(tempfile.mkdtemp(prefix="plain-user-", dir=parent))
    uid, gid = (NOBODY, NOBODY) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    try:
        for folder in (home / "tmp", home / "mount", home):
            folder.mkdir(exist_ok=True)
            os.chown(folder, uid, gid)
        yield PlainUser(uid, gid, home)
    finally:
        shutil.rmtree(home)


def become(uid: int, gid: int, command: list[str]) -> None:
    """Give up all rights for good, in the order in which it is still allowed, and turn into the command."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    os.execvp(command[0], command)  # noqa: S606 - there is no shell here on purpose


def main(command: list[str]) -> int:
    if command[0] == BECOME:
        become(int(command[1]), int(command[2]), command[3:])
    with plain_user() as user:
        # The command runs where we are, so that pytest finds its configuration; nothing there has to be writable.
        return subprocess.run(user.argv(*command), env=user.environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
