"""Settings of a runner, checked when it is made: a wrong one is an error before anything runs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from toolrunner.errors import ConfigError
from toolrunner.pipeline.deadlines import is_duration
from toolrunner.pipeline.services import Limits
from toolrunner.policy import Approver, Policy
from toolrunner.process import Processes, Supervisor
from toolrunner.process.probe import processes_at_once
from toolrunner.runner.containing import ContainedProcesses, Containing, sandbox_of
from toolrunner.runner.waiting import OnHostCancel

DEFAULT_PARALLEL = 10
"""Parallel-safe calls of one batch at once, if nobody says otherwise."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `Runner` is made with; its docstring says what each means. Times are seconds."""

    deps: Any = None
    policy: Policy | None = None
    approver: Approver | None = None
    max_parallel: int = DEFAULT_PARALLEL
    hook_timeout: float = 30.0
    approval_timeout: float = 300.0
    settle_timeout: float | None = None
    on_host_cancel: OnHostCancel | str = OnHostCancel.SETTLE
    host_cancel_wait: float = 30.0
    kill_after: float = 2.0
    dedupe_by_arguments: bool = False
    max_threads: int = 32
    max_processes: int | None = None
    spill_dir: str | Path | None = None
    sandbox: Containing = None
    supervisor: Callable[[], Processes] = Supervisor

    def __post_init__(self) -> None:
        """Refuse what cannot be worked with, naming it. Raises `ConfigError`."""
        for what in ("hook_timeout", "approval_timeout", "host_cancel_wait"):
            _require(is_duration(getattr(self, what)), what, getattr(self, what), "a finite number of seconds above 0")
        settle = self.settle_timeout
        _require(settle is None or is_duration(settle), "settle_timeout", settle, "a finite number of seconds above 0, or None")
        _require(self.kill_after == 0 or is_duration(self.kill_after), "kill_after", self.kill_after, "seconds, 0 or more")
        for what in ("max_parallel", "max_threads"):
            _require(_is_count(getattr(self, what)), what, getattr(self, what), "a whole number, 1 or more")
        most = self.max_processes
        spill = self.spill_dir
        _require(spill is None or (isinstance(spill, str | Path) and bool(str(spill))), "spill_dir", spill, "a folder, or None")
        _require(most is None or _is_count(most), "max_processes", most, "a whole number, 1 or more, or None")
        # Read now: what holds is what was there when the runner was made, whatever becomes of the file.
        usual = self.policy.profile if self.policy is not None else None
        object.__setattr__(self, "sandbox", sandbox_of(self.sandbox if self.sandbox is not None else usual))
        words = [str(word) for word in OnHostCancel]
        _require(self.on_host_cancel in words, "on_host_cancel", self.on_host_cancel, " or ".join(map(repr, words)))

    def processes(self) -> Processes:
        """Where processes come from: the supervisor, each contained if they are to be."""
        supervisor, sandbox = self.supervisor(), sandbox_of(self.sandbox)
        return supervisor if sandbox is None else ContainedProcesses(supervisor, sandbox)

    def limits(self) -> Limits:
        """The bounds, as the pipeline reads them."""
        return Limits(
            hook_timeout=self.hook_timeout,
            settle_timeout=self.settle_timeout,
            kill_after=self.kill_after,
            dedupe_by_arguments=self.dedupe_by_arguments,
            max_threads=self.max_threads,
            spill_dir=Path(self.spill_dir).absolute() if self.spill_dir is not None else None,
            max_processes=self.max_processes if self.max_processes is not None else processes_at_once(),
        )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def require_deadline(seconds: float | None) -> None:
    """Refuse a batch deadline that is no duration. Raises `ConfigError`."""
    _require(seconds is None or is_duration(seconds), "deadline", seconds, "a finite number of seconds above 0, or None")


def require_limit(seconds: float | None) -> None:
    """Refuse a limit of a close that is no number of seconds: NaN would never be over. Raises `ConfigError`."""
    _require(seconds is None or seconds == 0 or is_duration(seconds), "limit", seconds, "a finite number of seconds, or None")


def _require(good: bool, what: str, value: object, expected: str) -> None:
    if not good:
        raise ConfigError(what, value, expected)
