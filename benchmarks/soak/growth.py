"""What must not grow, looked at when nothing runs. No state."""

import gc
import threading
from dataclasses import dataclass
from typing import final

import psutil

from benchmarks.usage import descendants, open_fds, rss_kib


@final
@dataclass(frozen=True, slots=True)
class Look:
    """One quiet moment: KiB of our memory, counts of the rest. `processes` are the warden, idle keepers and their gates."""

    memory: float
    fds: int
    threads: int
    processes: int
    zombies: int

    @classmethod
    def take(cls) -> "Look":
        """Look now."""
        gc.collect()
        found = descendants()
        zombies = sum(_is_zombie(process) for process in found)
        return cls(rss_kib(), open_fds(), threading.active_count(), len(found) - zombies, zombies)


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
