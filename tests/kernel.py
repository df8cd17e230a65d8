"""What /proc says about processes, for the tests: identity, state, children. Reads only, keeps no state.

Not psutil: the leak guard runs twice around every test and needs three facts, and it must not agree with the code under test by
sharing its view of the world.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

PROC = Path("/proc")
PF_EXITING = 0x4  # include/linux/sched.h: the task has entered do_exit
SIGKILL_BIT = 1 << 8  # signal 9 in the masks of /proc/PID/status


@dataclass(frozen=True, slots=True)
class Seen:
    """One process as it was seen. Equality is identity: a pid alone is reused, pid and start time together are not."""

    pid: int
    starttime: int
    ppid: int = field(compare=False)
    state: str = field(compare=False)
    flags: int = field(compare=False)
    command: str = field(compare=False)


def look(pid: int) -> Seen | None:
    """Describe one process; None when it is gone. (proc(5): the name may hold blanks and brackets; split after the last one.)"""
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        argv = (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    name, _, rest = stat.partition("(")[2].rpartition(")")
    fields = rest.split()
    return Seen(pid, int(fields[19]), int(fields[1]), fields[0], int(fields[6]), argv or f"[{name}]")


def pids() -> set[int]:
    return {int(name) for name in os.listdir(PROC) if name.isdigit()}


def children(pid: int) -> set[Seen]:
    """Direct children, zombies included. Every thread has its own list (proc(5), /proc/PID/task/TID/children)."""
    found = set[int]()
    try:
        for tid in os.listdir(PROC / str(pid) / "task"):
            found.update(int(child) for child in (PROC / str(pid) / "task" / tid / "children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):
        # The thread or the process ended meanwhile, or the kernel has no CONFIG_PROC_CHILDREN: ask every process for its parent.
        found.update(seen.pid for other in pids() if (seen := look(other)) and seen.ppid == pid)
    return {seen for child in found if (seen := look(child))}


def descendants(pid: int) -> set[Seen]:
    found = set[Seen]()
    todo = [pid]
    while todo:
        fresh = children(todo.pop()) - found
        found |= fresh
        todo.extend(child.pid for child in fresh)
    return found


def is_dying(seen: Seen) -> bool:
    """Whether the kernel has already decided that it ends: it is exiting, or a SIGKILL that nothing can take back is pending.

    A zombie child of this very process does not count: nobody but us can reap it, and nobody did.
    """
    now = look(seen.pid)
    if now != seen or now is None:
        return True
    if now.state in "ZX":
        return now.ppid != os.getpid()
    return bool(now.flags & PF_EXITING) or _kill_is_pending(now.pid)


def _kill_is_pending(pid: int) -> bool:
    try:
        status = (PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return True
    masks = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd:", "ShdPnd:"))]
    return any(mask & SIGKILL_BIT for mask in masks)


def carries(pid: int, mark: bytes) -> bool:
    """Whether the environment a process was started with holds this text. False too when it may not be read."""
    try:
        return mark in (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
