"""The polite half of a stop: SIGTERM to everyone of the call, each process at most once, then SIGCONT.

A program at a terminal is first asked as a person would ask it, by Ctrl-C, and again, because some answer the first with a
question (`TERMINAL_STEPS`).

At most once, because terraform, docker compose and npm take a second SIGTERM as "force quit". SIGCONT after it, because a
stopped process gets its SIGTERM only when it goes on.
"""

import signal

from toolrunner.process.keeping.system import Kernel, Stat, stat

WALK_LIMIT = 10_000
"""Processes visited at most: a tree that grows faster than it is walked must not hold the keeper."""

STEPS = ((0.0, "SIGTERM"),)
"""When, as a part of the grace, and what. SIGKILL comes when the grace is over."""

TERMINAL_STEPS = ((0.0, "SIGINT"), (0.25, "SIGINT"), (0.5, "SIGTERM"))
"""The same at a terminal; half of the grace is left for what SIGTERM makes a program do."""


def descendants(kernel: Kernel, but: int = 0) -> list[Stat]:
    """Everything below this process, as far as parent links reach, without facts about `but` (what is below it is looked at)."""
    return walk(kernel, kernel.children(), but)


def walk(kernel: Kernel, waiting: list[int], but: int = 0) -> list[Stat]:
    """Those that wait, which is used up, and everything below them."""
    found: list[Stat] = []
    seen = set(waiting)
    while waiting and len(seen) < WALK_LIMIT:
        pid = waiting.pop()
        if pid != but:
            facts = stat(pid)
            if facts is None:
                continue
            found.append(facts)
        below = [child for child in kernel.children(pid) if child not in seen]
        seen.update(below)
        waiting += below
    return found


def terminate(kernel: Kernel, group: int) -> None:
    """SIGTERM, then SIGCONT, to the call's group and to every descendant outside it. The caller holds the group's number."""
    # Who is outside is looked up before the group gets its signal: a member that then leaves the group is not signalled twice.
    # The leader cannot leave its group, because it leads a session too (setpgid(2)).
    outside = [facts for facts in descendants(kernel, group) if facts.pgrp != group and facts.state != "Z"]
    for number in (signal.SIGTERM, signal.SIGCONT):
        try:
            kernel.kill_group(group, number)
        except OSError:  # ESRCH: nobody left in it; EPERM: nobody we may signal. The sweep says who remains.
            pass
        for facts in outside:
            kernel.signal_other(facts.pid, facts.starttime, number)


def interrupt(kernel: Kernel, leader: int) -> None:
    """SIGINT to the foreground group of the leader's terminal, as Ctrl-C would, then SIGCONT."""
    facts = stat(leader)
    front = facts.foreground if facts is not None and facts.foreground > 1 else leader
    # A job of an interactive shell: its number is nobody's whom we hold, so each member is signalled by itself.
    apart = descendants(kernel) if front != leader else []
    members = [facts for facts in apart if facts.pgrp == front and facts.state != "Z"]
    for number in (signal.SIGINT, signal.SIGCONT):
        for facts in members:
            kernel.signal_other(facts.pid, facts.starttime, number)
        if not members:
            try:
                kernel.kill_group(leader, number)
            except OSError:  # nobody left in it, or nobody we may signal
                pass


def contained(kernel: Kernel, own: int) -> list[Stat]:
    """The processes below the first `own` generations: those of a command that is contained, not those that contain it.

    Of bubblewrap two are passed over. SIGTERM to its outer process would kill the command without a warning, and its inner one,
    the init of the pid namespace, ignores it.
    """
    level = kernel.children()
    for _ in range(own):
        level = [child for pid in level for child in kernel.children(pid)]
    return [facts for facts in walk(kernel, level) if facts.state != "Z"]


def signal_contained(kernel: Kernel, own: int, name: str) -> None:
    """The signal, then SIGCONT, to each process of a command that is contained."""
    for facts in contained(kernel, own):
        for number in (getattr(signal, name), signal.SIGCONT):
            kernel.signal_other(facts.pid, facts.starttime, number)
