"""Run one shell script under a supervisor and time it: the shape of almost every case about processes."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import anyio

from toolrunner.process import LaunchPlan, Prepared, ProcessEnd, Supervisor

SLACK = 30.0
"""Seconds of scheduling noise on a machine whose cores are all busy. Every shape would hang for minutes if it were wrong; how
quick the right way is, the benchmarks say."""

GRACE = 0.3
"""Short, because most shapes let it run out."""

BOUND = 60.0
"""No shape may take this long, whatever is wrong."""


@final
@dataclass(slots=True)
class Outcome:
    """How a shape ended. `seconds` are those from the release to the result; `chunks` is what the observer saw."""

    end: ProcessEnd
    seconds: float
    chunks: list[bytes] = field(default_factory=list)

    @property
    def out(self) -> str:
        return self.end.facts.stdout


def sh(script: str) -> tuple[str, ...]:
    return ("bash", "-c", script)


async def run(supervisor: Supervisor, script: str | tuple[str, ...], **plan: Any) -> Outcome:
    """Run to the end by itself or by its own time limit."""
    return await run_until(supervisor, script, lambda _: False, **plan)


async def run_until(
    supervisor: Supervisor,
    script: str | tuple[str, ...],
    enough: Callable[[bytes], bool],
    *,
    grace: float | None = None,
    **plan: Any,
) -> Outcome:
    """Run, and stop it once `enough` says so of the output that has come so far."""
    plan.setdefault("kill_after", GRACE)
    seen: list[bytes] = []
    prepared: Prepared | None = None

    def look(stream: str, data: bytes) -> None:
        seen.append(data)
        if prepared is not None and enough(b"".join(seen)):
            prepared.stop(grace=grace)

    with anyio.fail_after(BOUND):
        prepared = await supervisor.prepare(LaunchPlan(sh(script) if isinstance(script, str) else script, **plan), on_output=look)
        start = time.monotonic()
        prepared.go()
        end = await prepared.wait()
    return Outcome(end, time.monotonic() - start, seen)


def part(output: bytes) -> bool:
    """The script printed its word."""
    return b"part" in output


def alive(pid: int) -> bool:
    """Whether there is a process of this number that is no zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in b"ZX"
    except OSError:
        return False


def open_fds() -> set[str]:
    return set(os.listdir("/proc/self/fd"))
