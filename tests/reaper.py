"""Run a command as a child subreaper: `python tests/reaper.py COMMAND...`. Exits with its status, or 97 when something was left.

Whatever the command leaves behind, without parent, session, environment or descriptors, falls to this process: that is the
kernel's own list, so "the test suite left nothing running" is a proof here and only a good search elsewhere. The command finds
this process through its environment (leaks.REAPER), so that the guard can blame the single test. Stdlib only.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from types import FrameType

import kernel

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
LEFT_SOMETHING = 97
DYING_BOUND = 2.0  # what was already killed may need a moment to vanish; nothing else gets one


def reap_until(child: int) -> int:
    """Collect every zombie that falls to us; return the wait status of `child`."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def left_over() -> set[kernel.Seen]:
    """Reap what is dead, wait, bounded, for what is dying, and return what lives."""
    end = time.monotonic() + DYING_BOUND
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        left = kernel.descendants(os.getpid())
        if not left or time.monotonic() > end or not all(kernel.is_dying(seen) for seen in left):
            return left
        time.sleep(0.005)


def end_all() -> None:
    """Kill direct children until there are none: grandchildren become direct children as their parents die."""
    end = time.monotonic() + DYING_BOUND
    while (direct := kernel.children(os.getpid())) and time.monotonic() < end:
        for seen in direct:
            os.kill(seen.pid, signal.SIGKILL)  # an unreaped child of ours: its number cannot be reused
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.001)


def main(command: list[str]) -> int:
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")
    child = subprocess.Popen(command, env={**os.environ, "TOOLRUNNER_TEST_REAPER": str(os.getpid())})

    def pass_on(number: int, _frame: FrameType | None) -> None:
        child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the command as well, which decides
    code = reap_until(child.pid)
    child.returncode = code  # reaped above, so Popen must not look for it
    left = left_over()
    for seen in left:
        print(f"left running: {seen.pid} ({seen.state}) {seen.command}", file=sys.stderr)
    end_all()
    return (code or LEFT_SOMETHING) if left else code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
