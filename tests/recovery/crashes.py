"""Runs that are killed at a write of their journal, and what must be true of it when it is opened again."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from recovery.crash_host import JOURNAL, TRUTH

import toolrunner
from toolrunner import ToolResult
from toolrunner.facts import EffectStage, EffectState
from toolrunner.journal import JournalReader
from toolrunner.recovery import Past, read_all
from toolrunner.results import Code, Outcome

MODES = ("before", "handed", "written")


@final
class CrashHost:
    """The program whose runs are killed. Use `crash_host`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def crash(self, folder: Path, backend: str, at: float, mode: str) -> bool:
        """One run, killed at its `at`-th append, or (mode "moment") after `at` seconds; False when it ended before."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"folder": str(folder), "backend": backend, "at": at, "mode": mode}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        assert status in (0, -signal.SIGKILL)
        return status != 0


@contextmanager
def crash_host() -> Iterator[CrashHost]:
    """Start it and end it."""
    program = Path(__file__).with_name("crash_host.py")
    paths = [str(Path(toolrunner.__file__).parents[1]), str(Path(__file__).parents[1])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        [sys.executable, str(program)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield CrashHost(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(10)


@dataclass
class Happened:
    """The truth, as the bodies left it."""

    entered: list[tuple[str, str]] = field(default_factory=list)
    made: list[tuple[str, str]] = field(default_factory=list)
    over: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> "Happened":
        truth = cls()
        path = folder / TRUTH
        for line in path.read_text().splitlines() if path.exists() else ():
            verb, run_id, name = line.split(" ", 2)
            getattr(truth, verb).append((run_id, name))
        return truth


def read(folder: Path) -> Past:
    """All that the journal says."""
    with JournalReader(folder / JOURNAL) as reader:
        return read_all(reader)


def check(folder: Path) -> dict[str, ToolResult]:
    """The journal, recovered, tells of each call what really happened, or that it is not known. Nothing is lost or invented."""
    past, truth = read(folder), Happened.read(folder)
    results = {run_id: story.settled.result for run_id, story in past.stories.by_run.items() if story.settled is not None}
    assert set(results) == set(past.stories.by_run)
    assert {run_id for run_id, _ in truth.entered} <= {run_id for run_id, one in results.items() if one.started}
    for run_id, result in results.items():
        made = {name for owner, name in truth.made if owner == run_id}
        if result.replayed:
            assert results[result.about_run_id or ""].outcome is result.outcome
            continue
        _check_one(result, made, is_over=any(owner == run_id for owner, _ in truth.over))
    return results


def _check_one(result: ToolResult, made: set[str], *, is_over: bool) -> None:
    if not result.started:
        assert not made
        assert result.effects.state is EffectState.NONE
        return
    applied = {one.target for one in result.effects.records if one.stage is EffectStage.APPLIED and one.owner is None}
    assert applied <= made
    if result.effects.state in (EffectState.NONE, EffectState.REVERTED):
        assert not made
    if result.outcome is Outcome.SUCCEEDED:
        assert is_over
        assert applied == made or not applied
    if result.code is Code.LOST:
        assert result.effects.state in (EffectState.UNKNOWN, EffectState.PARTIAL)


def starts_per_name(folder: Path) -> dict[str, int]:
    """How often the body of each call was entered, over all rounds."""
    counts: dict[str, int] = {}
    for _, name in Happened.read(folder).entered:
        counts[name] = counts.get(name, 0) + 1
    return counts
