"""The leak guard: what is there before a test must be all that is there after it.

A `Snapshot` is taken before and after every test by an autouse fixture of conftest.py; `leaks()` names what is new. Nothing gets
time to settle: an ending that is still in flight when the test is over was not awaited by anybody. The two exceptions are facts
that only the kernel or another library can finish, both bounded: a process that is already dying (`kernel.is_dying`), and a
worker thread of anyio or asyncio that was already told to stop.

The environment of the test session carries MARK, so a descendant that lost its parent is still found. One that also cleared its
environment is found only when the tests run under tests/reaper.py, which every orphan then falls to.
"""

import asyncio
import os
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kernel
import sniffio
import trio

MARK = "TOOLRUNNER_TEST_SESSION"
REAPER = "TOOLRUNNER_TEST_REAPER"
DYING_BOUND = 2.0  # from a SIGKILL to an empty /proc entry; milliseconds on an idle machine, more when every core is busy
THREAD_BOUND = 2.0  # a thread that was told to stop needs the interpreter lock once more
OUR_PREFIX = "toolrunner"
# Idle workers of trio's process-wide cache: trio keeps them 10 s for reuse and gives a working one another name.
IDLE_THREAD_NAMES = ("Trio thread ",)
# Threads that end by themselves right after the event that a test waited for, with nobody to join them.
STOPPING_THREAD_NAMES = ("AnyIO worker thread", "waitpid-", "asyncio_")
WATCHED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGQUIT)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of this process and of what came from it. Each field is compared by set inclusion, so reuse is no leak."""

    processes: frozenset[kernel.Seen]
    known_pids: frozenset[int] = field(repr=False)
    fds: frozenset[tuple[int, str]]
    threads: frozenset[threading.Thread]
    files: frozenset[str]
    signal_actions: tuple[object, ...]
    folder: str

    @classmethod
    def take(cls, known_pids: frozenset[int] = frozenset()) -> "Snapshot":
        """Look once. Pids in `known_pids` were there before the test, so their environment need not be read again."""
        return cls(
            processes=frozenset(ours(known_pids)),
            known_pids=frozenset(kernel.pids()),
            fds=frozenset(open_fds()),
            threads=frozenset(threading.enumerate()),
            files=frozenset(temp_files()),
            signal_actions=tuple(signal.getsignal(number) for number in WATCHED_SIGNALS),
            folder=os.getcwd(),
        )


def ours(known_pids: frozenset[int]) -> set[kernel.Seen]:
    """Our descendants, plus orphans: by the mark in their environment, and by kernel membership under tests/reaper.py."""
    me = os.getpid()
    found = kernel.descendants(me)
    mark = f"{MARK}={os.environ.get(MARK, '')}".encode()
    strangers = kernel.pids() - known_pids - {me} - {seen.pid for seen in found}
    found |= {seen for pid in strangers if kernel.carries(pid, mark) and (seen := kernel.look(pid))}
    if os.environ.get(REAPER) == str(os.getppid()):
        orphans = {seen for seen in kernel.children(os.getppid()) if seen.pid != me}
        found |= orphans.union(*(kernel.descendants(orphan.pid) for orphan in orphans))
    return found


def open_fds() -> Iterator[tuple[int, str]]:
    """Every open descriptor with what it points at: the same number for another file is another descriptor."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the descriptor that listed the folder is closed by now
            yield int(name), os.readlink(f"/proc/self/fd/{name}")


def temp_files() -> Iterator[str]:
    """What lies in the session's own TMPDIR, and what bears our name in /tmp; see `strays`.

    /tmp is looked at only where no other process of this session can have put it there; conftest.py looks at the end of all.
    """
    folder = Path(tempfile.gettempdir())
    if folder != Path("/tmp"):
        yield from (str(path) for path in folder.iterdir())
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield from strays()


def strays() -> Iterator[str]:
    """Whatever bears our name where a program without TMPDIR would put it.

    But not the folder of control sockets: it is the user's, and any program of theirs may make it while a test runs.
    """
    shared = f"{OUR_PREFIX}-{os.geteuid()}"
    for entry in os.scandir("/tmp"):
        with suppress(FileNotFoundError):
            ours = entry.name.startswith(OUR_PREFIX) and entry.name != shared
            if ours and entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                yield entry.path


def leaks(before: Snapshot, after: Snapshot) -> list[str]:
    """Name everything that is in `after` and not in `before`, one line each. Empty means clean."""
    found = [
        f"process {seen.pid} ({seen.state}): {seen.command}" for seen in sorted_processes(after.processes - before.processes)
    ]
    found += [f"fd {number}: {target}" for number, target in sorted(after.fds - before.fds)]
    found += [
        f"thread {thread.name}" for thread in after.threads - before.threads if not thread.name.startswith(IDLE_THREAD_NAMES)
    ]
    found += [f"temp file {path}" for path in sorted(after.files - before.files)]
    actions = zip(WATCHED_SIGNALS, before.signal_actions, after.signal_actions, strict=True)
    found += [f"signal action of {number.name}: {new!r} instead of {old!r}" for number, old, new in actions if old is not new]
    found += [f"working directory {after.folder} instead of {before.folder}"] if after.folder != before.folder else []
    return found


def sorted_processes(processes: frozenset[kernel.Seen]) -> list[kernel.Seen]:
    return sorted(processes, key=lambda seen: seen.pid)


def check(before: Snapshot) -> list[str]:
    """Look for leaks at once, and again only for endings already decided. Then clean up, so that one test fails and not all."""
    after = Snapshot.take(before.known_pids)
    if leaks(before, after) and _only_endings_in_flight(before, after):
        after = Snapshot.take(before.known_pids)
    found = leaks(before, after)
    if found:
        clean_up(before, after)
    return found


def _only_endings_in_flight(before: Snapshot, after: Snapshot) -> bool:
    """Wait, bounded, for dying processes and stopping threads. True when there were any, so that it is worth looking again."""
    threads = [thread for thread in after.threads - before.threads if thread.name.startswith(STOPPING_THREAD_NAMES)]
    for thread in threads:
        thread.join(THREAD_BOUND)
    processes = [seen for seen in after.processes - before.processes if kernel.is_dying(seen)]
    # The kernel announces the end of a process that is no child of ours to nobody but its parent, so this one is polled.
    poll(lambda: not any(kernel.look(seen.pid) == seen for seen in processes), DYING_BOUND)
    return bool(threads or processes)


def poll(condition: Callable[[], bool], bound: float) -> bool:
    """Ask until true or until `bound` seconds are over. For kernel facts that nothing announces; everything else has an event."""
    end = time.monotonic() + bound
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def clean_up(before: Snapshot, after: Snapshot) -> None:
    """End what leaked: SIGKILL through a descriptor whose process was checked after opening, so a reused number is never hit."""
    for seen in after.processes - before.processes:
        with suppress(OSError):
            descriptor = os.pidfd_open(seen.pid)
            try:
                if kernel.look(seen.pid) == seen:
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            finally:
                os.close(descriptor)
        with suppress(ChildProcessError):
            os.waitpid(seen.pid, 0) if seen.ppid == os.getpid() else None
    own = Path(tempfile.gettempdir())
    for path in map(Path, after.files - before.files):
        # A folder in /tmp that bears our name may be anybody's checkout: it is told, and left.
        if (own in path.parents and own != Path("/tmp")) or not path.is_dir():
            remove(path)
    for number, action in zip(WATCHED_SIGNALS, before.signal_actions, strict=True):
        if signal.getsignal(number) is not action and (callable(action) or isinstance(action, int)):
            signal.signal(number, action)
    os.chdir(before.folder)


def remove(path: Path) -> None:
    """Remove a file or a whole folder, without following links."""
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return
        for inner in path.iterdir():
            remove(inner)
        path.rmdir()


def tasks() -> dict[object, str]:
    """Every task of the running loop with its name, system tasks included."""
    if sniffio.current_async_library() == "trio":
        return {task: task.name for task in _trio_tasks()}
    names = {task: f"{task.get_name()} {task.get_coro()!r}" for task in asyncio.all_tasks()}
    # anyio's plugin enters the loop through a new task for each fixture and test; the one we are asked from is not the test's.
    return {task: name for task, name in names.items() if "TestRunner._call_in_runner_task" not in name}


def _trio_tasks() -> Iterator[Any]:
    root = trio.lowlevel.current_root_task()
    todo = [root] if root is not None else []
    while todo:
        task = todo.pop()
        yield task
        todo.extend(child for nursery in task.child_nurseries for child in nursery.child_tasks)
