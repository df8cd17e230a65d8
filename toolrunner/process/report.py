"""Words of a keeper's report turned into facts. Pure."""

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import final

from toolrunner.facts import StillRunning, StillRunningKind
from toolrunner.process.ending import SpawnError, SpawnErrorKind, exec_error_kind
from toolrunner.process.keeping.messages import parse_listing

Listing = list[tuple[int, int, int, str, str]]


@final
@dataclass(frozen=True, slots=True)
class Report:
    """What is known when a call is over. Times are CLOCK_MONOTONIC seconds; `status` is a wait status (wait(2)).

    `cause`: exited | stopped | timed_out | lost | refused. `released` None = the keeper was lost before it could say. `left` is
    what remains; empty, it is a proof only with `proven`.
    """

    cause: str
    released: bool | None = None
    exec_error: tuple[int, bool] | None = None
    status: int | None = None
    exit_at: float | None = None
    delivered: float | None = None
    at: float = 0.0
    signals: tuple[str, ...] = ()
    drained_out: bool = False
    left: Listing = field(default_factory=list)
    proven: bool = True
    keeper_lost: bool = False
    leftovers: Listing = field(default_factory=list)
    kept: Listing = field(default_factory=list)
    """Who outlived the leader and lives on: then this is the end of the call, and not of its processes."""


def parse_report(words: dict[str, str]) -> Report:
    """A keeper's `ended` message."""
    number, _, interpreter = words["exec"].partition(":")
    return Report(
        cause=words["cause"],
        released=words["released"] == "1",
        exec_error=(int(number), interpreter == "1") if number else None,
        status=int(words["status"]) if words["status"] else None,
        exit_at=_float(words["exit_at"]),
        delivered=_float(words["delivered"]),
        at=float(words["at"]),
        signals=tuple(filter(None, words["signals"].split(","))),
        drained_out=words["drained_out"] == "1",
        left=parse_listing(words["left"]),
        leftovers=parse_listing(words["leftovers"]),
    )


def parse_hand_over(words: dict[str, str]) -> Report:
    """A keeper's `kept` message: the leader is gone by itself, and those who outlive it are kept."""
    return Report(
        cause="exited",
        released=True,
        status=int(words["status"]) if words["status"] else None,
        exit_at=_float(words["exit_at"]),
        at=float(words["at"]),
        drained_out=words["drained_out"] == "1",
        kept=parse_listing(words["left"]),
    )


def _float(word: str) -> float | None:
    return float(word) if word else None


def exit_facts(status: int | None) -> tuple[int | None, str | None]:
    """Exit code and signal name of a wait status; exactly one is set, neither when the status is not known."""
    if status is None:
        return None, None
    code = os.waitstatus_to_exitcode(status)
    return (code, None) if code >= 0 else (None, signal_name(-code))


def signal_name(number: int) -> str:
    """Return "SIGKILL" for 9; a real-time signal has no name of its own everywhere."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def still_running(
    entries: Iterable[tuple[int, int, int, str, str]], kind: StillRunningKind = StillRunningKind.PROCESS
) -> tuple[StillRunning, ...]:
    """Processes of a report as facts."""
    entries = list(entries)
    if not entries:  # the usual case, and /proc/stat counts every interrupt before it can be read
        return ()
    boot = _boot_time()
    ticks = os.sysconf("SC_CLK_TCK")
    return tuple(
        StillRunning(
            what=name or f"process {pid}",
            kind=kind,
            pid=pid,
            uid=uid if uid >= 0 else None,
            since=datetime.fromtimestamp(boot + starttime / ticks, UTC) if boot and starttime else None,
            error=error or None,
        )
        for pid, uid, starttime, name, error in entries
    )


def _boot_time() -> float:
    """Seconds since the epoch at boot (btime in proc_stat(5)), or 0 where it cannot be read."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            return next((float(line.split()[1]) for line in file if line.startswith("btime ")), 0.0)
    except OSError:
        return 0.0


def spawn_error(argv0: str | bytes, number: int, interpreter: bool) -> SpawnError:
    """Why the exec failed, in words that name the command."""
    name = os.fsdecode(argv0)
    kind = exec_error_kind(number)
    if interpreter:
        return SpawnError(SpawnErrorKind.NOT_EXECUTABLE, f"{name!r}: the interpreter in its first line does not exist", number)
    if kind is SpawnErrorKind.NOT_FOUND:
        where = "no such file" if "/" in name else "no such command in the call's PATH"
        return SpawnError(kind, f"{name!r}: {where}", number)
    if kind is SpawnErrorKind.TOO_LONG:
        return SpawnError(kind, f"{name!r}: arguments and environment together are more than the kernel takes", number)
    return SpawnError(kind, f"{name!r}: {os.strerror(number)}", number)
