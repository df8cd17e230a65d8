"""Ctrl-C while our own command line is still being imported: it leaves quietly with status 130, and nothing has run.

Without this the imports, some tenths of a second, end in a traceback. State: the action of SIGINT, from the first import until
`is_over`; and only in a program that is ours: a library leaves signals alone.
"""

import itertools
import os
import signal
import sys
import threading
from pathlib import Path

PROGRAMS = frozenset({"toolrunner", "agent-toolrunner"})

STATUS = 128 + signal.SIGINT


def _is_ours() -> bool:
    """Whether this process was started as `toolrunner` or `python -m toolrunner`, whose argv[0] is "-m" while that is found."""
    name = Path(sys.argv[0]).name if getattr(sys, "argv", None) else ""
    return name in PROGRAMS or (name == "-m" and ("-m", "toolrunner") in itertools.pairwise(sys.orig_argv))


def _leave(*_: object) -> None:
    os._exit(STATUS)


def is_over() -> None:
    """The program has begun, and takes signals its own way."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# Not where SIGINT is ignored (nohup, a shell's background job): that is meant. Signals can be set in the main thread only.
if (
    _is_ours()
    and threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, _leave)
