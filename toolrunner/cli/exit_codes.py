"""What scripts read: the exit status of `toolrunner run` and `batch`. Pure.

The numbers of timeout(1), env(1) and the shells where they have one. A script that must know should read `outcome`: the command's
own status may be any of these.
"""

import signal

from toolrunner.results import Code, ErrorKind, Outcome, ToolResult

FAILED = 1
"""What was asked about cannot be had: no such call, a journal that cannot be read. (Not of `run` and `batch`.)"""

USAGE = 2
"""A bad option, or (batch) a malformed line."""

LOST = 70
"""It ran, and nobody saw its end (EX_SOFTWARE of sysexits.h): neither "refused" nor a status of the command."""

NOT_WRITTEN = 74
"""The result could not be written where it was asked for (EX_IOERR). Only in the place of a 0: a failure keeps its number."""

TIMED_OUT = 124
REFUSED = 125
NOT_EXECUTABLE = 126
NOT_FOUND = 127
BY_SIGNAL = 128
"""128 + n: ended by signal n."""

ABORTED = BY_SIGNAL + signal.SIGINT

_NEVER_RAN = {
    ErrorKind.NOT_FOUND: NOT_FOUND,
    ErrorKind.NOT_EXECUTABLE: NOT_EXECUTABLE,
    ErrorKind.TOO_LONG: NOT_EXECUTABLE,
}


def of_abort(by: signal.Signals | None) -> int:
    """130, or 143 and 129 when SIGTERM or SIGHUP asked. An abort that no signal asked for (a reader that left) is 130 too."""
    return BY_SIGNAL + by if by is not None else ABORTED


def of_result(result: ToolResult, by: signal.Signals | None) -> int:
    """The status for one call. `by` is the first signal that asked toolrunner to stop."""
    match result.outcome:
        case Outcome.SUCCEEDED:
            return 0
        case Outcome.TIMED_OUT:
            return TIMED_OUT
        case Outcome.ABORTED:
            return of_abort(by)
        case Outcome.FAILED:
            return _of_failure(result)
        case Outcome.DENIED | Outcome.REJECTED:
            kind = result.error.kind if result.error is not None else ""
            return next((status for known, status in _NEVER_RAN.items() if known == kind), REFUSED)


def _of_failure(result: ToolResult) -> int:
    process = result.process
    if process is None or result.code in (Code.LOST, Code.KEEPER_LOST):
        return LOST
    if process.signal is not None:
        return BY_SIGNAL + _number(process.signal)
    return process.exit_code or LOST


def _number(name: str) -> int:
    """The number in a name like SIGKILL; a signal this Python has no name for is told as its number."""
    try:
        return signal.Signals[name]
    except KeyError:
        digits = "".join(filter(str.isdigit, name))
        return int(digits) if digits else 0
