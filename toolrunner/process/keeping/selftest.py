"""The warden's proof, once at its start, that the kernel does here what the keepers rely on. Takes a few milliseconds.

An orphaned grandchild must come to us, be listed, be opened by pidfd, be killed and be reaped. Containers with seccomp
filters, old kernels and strange /proc mounts fail one step or another; what fails selects the next best way, or `unfit`.
"""

import os
import select
import signal

from toolrunner.process.keeping.system import Kernel, scanned_children

STEP_BOUND = 2.0
"""Seconds for the test's own processes to come and go: they take 3 ms, and a loaded machine must not look unfit."""


class Findings:
    """`fit` unless a reason forbids keepers; `reasons` also names what is only less good."""

    def __init__(self, unfit: list[str]) -> None:
        self.fit = not unfit
        self.reasons = unfit


def examine(kernel: Kernel) -> Findings:
    """Run the test; sets `kernel.lists` and `kernel.pidfds`. Raises nothing."""
    hold_out, hold_in = os.pipe2(os.O_CLOEXEC)
    try:
        orphan = make_orphan(hold_out, hold_in)
        return judge(kernel, orphan)
    except (OSError, ValueError) as exc:
        return Findings([f"self-test: {exc}"])
    finally:
        os.close(hold_out)
        os.close(hold_in)  # an orphan that could not be killed leaves now


def judge(kernel: Kernel, orphan: int) -> Findings:
    """What works with this orphan, best way first."""
    findings = Findings([])
    try:
        kernel.lists = orphan in kernel.children()
    except OSError:
        kernel.lists = False
    if not kernel.lists:
        if orphan not in scanned_children(os.getpid()):
            return Findings(["self-test: an orphaned grandchild was not re-parented to the warden, or /proc hides it"])
        findings.reasons.append("no /proc/PID/task/TID/children: parents are scanned instead")
    try:
        fd = os.pidfd_open(orphan)
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        os.close(fd)
    except OSError as exc:
        kernel.pidfds = False
        findings.reasons.append(f"no pidfd ({exc.strerror}): processes outside the call's group get no SIGTERM")
        os.kill(orphan, signal.SIGKILL)
    os.waitpid(orphan, 0)
    return findings


def make_orphan(hold_out: int, hold_in: int) -> int:
    """The pid of a grandchild whose parent is gone; it blocks until it is killed or `hold_in` is closed everywhere."""
    pid_out, pid_in = os.pipe2(os.O_CLOEXEC)
    parent = os.fork()
    if parent == 0:
        try:
            child = os.fork()
            if child == 0:
                os.close(hold_in)
                os.read(hold_out, 1)
            else:
                os.write(pid_in, b"%d" % child)
        finally:
            os._exit(0)
    os.close(pid_in)
    ready = select.select([pid_out], [], [], STEP_BOUND)[0]
    os.waitpid(parent, 0)
    orphan = int(os.read(pid_out, 32)) if ready else 0
    os.close(pid_out)
    if not orphan:
        raise ValueError("the child of the test answered nothing")
    return orphan
