"""What processes use: memory, descriptors, CPU time, read from /proc. No state."""

import os
from pathlib import Path

import psutil

KIB = 1024


def private_kib(pid: int) -> int | None:
    """Private memory of a process in KiB (smaps_rollup, proc(5)); None when we may not look, as plain users into keepers."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:")))


def rss_kib() -> float:
    """Our own resident memory."""
    return float(psutil.Process().memory_info().rss) / KIB


def peak_kib() -> int:
    """The most it has been since `reset_peak`."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def reset_peak() -> None:
    """Begin a new peak (proc_pid_clear_refs(5))."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def open_fds() -> int:
    """Our open descriptors."""
    return len(os.listdir("/proc/self/fd")) - 1  # the one that lists


def descendants() -> list[psutil.Process]:
    """Everything that came from us, zombies included."""
    return psutil.Process().children(recursive=True)
