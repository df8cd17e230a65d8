"""Spill files are on disk before `call/ended` names them: a journal that survives a power cut must not point at what does not.

No state. Done where the end of a body is recorded and not where the file is written: only there it is known that somebody will
read of it after this process, and an fsync may take seconds, so it runs in a thread.
"""

import os
from dataclasses import replace
from pathlib import Path

import anyio

from toolrunner.effects import DURABLE_WAIT
from toolrunner.loops import call_later, poster
from toolrunner.memory import MemoryJournal
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.tasks import wait_through


async def keep_spilled(state: ActiveCall, services: Services) -> None:
    """Have the spill files of a body that ended on disk. What cannot be is told in the result's `missing`.

    Not for the journal in memory, which is gone before any page of the file could be.
    """
    end = state.end
    if end is None or end.process is None or not end.process.spill or isinstance(services.journal, MemoryJournal):
        return
    paths = tuple(map(Path, end.process.spill))
    problems: list[str] = []
    synced, over = anyio.Event(), anyio.Event()

    def sync() -> None:
        problems.extend(problem for path in paths if (problem := _synced(path)) is not None)

    def done() -> None:
        synced.set()
        over.set()

    try:
        services.threads.start(sync, poster(), done)
    except RuntimeError as error:  # the system gives no more threads
        state.end = replace(end, missing=(*end.missing, f"spill: not known to be on disk: {error}"))
        return
    take_back = call_later(DURABLE_WAIT, over.set)  # a disk that never answers must not hold a call for ever
    try:
        await wait_through(over)
    finally:
        take_back()
    if not synced.is_set():
        problems = [f"spill: not known to be on disk after {DURABLE_WAIT:g} s"]
    if problems:
        state.end = replace(end, missing=(*end.missing, *problems))


def _synced(path: Path) -> str | None:
    """Sync a file and the folder that has its name; None, or what went wrong."""
    try:
        for one in (path, path.parent):
            # Another descriptor than the writer's does: fsync is about the file and all its pages.
            fd = os.open(one, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
    except OSError as error:
        return f"spill: {path} is not known to be on disk: {error.strerror}"
    return None
