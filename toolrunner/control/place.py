"""Where the sockets lie: a folder of this user's alone. State: the folder and the sockets in it, on disk.

$XDG_RUNTIME_DIR/toolrunner (XDG Base Directory specification), which the system empties at log-out. Without one,
/tmp/toolrunner-UID: a fixed name, so that programs find each other, and therefore one that somebody else may have made first;
then it is not used.
"""

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import final

from toolrunner.errors import ToolrunnerError

SUFFIX = ".sock"

PRIVATE = 0o700


@final
class NoPlace(ToolrunnerError):
    """There is no folder in which a control socket would be safe."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(f"no control socket in {str(folder)!r}: {why}")
        self.folder = folder


def folder(*, make: bool) -> Path:
    """The folder, checked. With `make` it is made if it is missing; else a missing one is returned as it is.

    Raises:
        NoPlace: it cannot be made, or is not ours alone.
    """
    found = _wanted()
    try:
        if make:
            found.mkdir(mode=PRIVATE, exist_ok=True)
        facts = found.lstat()
    except FileNotFoundError as error:
        if not make:
            return found
        raise NoPlace(found, "there is no folder to make it in") from error
    except OSError as error:
        raise NoPlace(found, error.strerror or str(error)) from error
    if not stat.S_ISDIR(facts.st_mode):
        raise NoPlace(found, "it is no folder")
    if facts.st_uid != os.geteuid():
        raise NoPlace(found, f"it belongs to user {facts.st_uid}")
    if facts.st_mode & 0o077:
        raise NoPlace(found, f"others may enter it (mode {stat.S_IMODE(facts.st_mode):o}); chmod 700 it or remove it")
    return found


def _wanted() -> Path:
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    runtime = Path(given)
    if runtime.is_absolute() and runtime.is_dir() and runtime.stat().st_uid == os.geteuid():
        return runtime / "toolrunner"
    return Path("/tmp") / f"toolrunner-{os.geteuid()}"  # noqa: S108 - checked above before it is used


def sockets(place: Path) -> Iterator[Path]:
    """The sockets that lie there, dead ones too. A folder that is missing has none."""
    try:
        found = sorted(place.iterdir())
    except OSError:
        return
    yield from (path for path in found if path.suffix == SUFFIX)


def listen(place: Path, name: str, backlog: int) -> socket.socket:
    """A listening socket there, non-blocking. Raises OSError."""
    with _short(place, name) as address:
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            found.setblocking(False)
            found.bind(address)
            found.listen(backlog)
        except BaseException:
            found.close()
            raise
    return found


def connect(path: Path, timeout: float) -> socket.socket:
    """A connection to the socket at `path`, with `timeout` seconds for each step, 0 for none at all. Raises OSError."""
    with _short(path.parent, path.name) as address:
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            found.settimeout(timeout)
            found.connect(address)
        except BaseException:
            found.close()
            raise
    return found


def is_dead(path: Path) -> bool:
    """Whether nobody listens at this socket any more. (Its program was killed; a living one always listens.)"""
    try:
        connect(path, 0).close()  # at once: a program that is stopped must not hold up another one
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def sweep(place: Path) -> None:
    """Remove what dead programs left."""
    for path in sockets(place):
        if is_dead(path):
            path.unlink(missing_ok=True)


@final
class _short:  # noqa: N801 - reads as the verb it is
    """The address of a socket in `place`, by way of a descriptor of that folder: a sun_path has 108 bytes at most (unix(7))."""

    def __init__(self, place: Path, name: str) -> None:
        self._place, self._name = place, name
        self._fd = -1

    def __enter__(self) -> str:
        plain = str(self._place / self._name)
        if len(os.fsencode(plain)) < 100 or not Path("/proc/self/fd").is_dir():  # noqa: PLR2004 - sun_path, with room on every system
            return plain
        self._fd = os.open(self._place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._fd}/{self._name}"

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
