"""What one process to start looks like: a frozen description, made by a command tool or by a sandbox, read by the supervisor."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from toolrunner.errors import ConfigError

Environment = Mapping[str, str | None] | Mapping[bytes, bytes | None] | Mapping[str | bytes, str | bytes | None]
"""Names and values; a str goes through `os.fsencode`, so what is not UTF-8 survives. None removes a name."""

STREAMS = 3
"""Descriptors 0, 1 and 2 are the streams."""

DEFAULT_OUTPUT_LIMIT = 1 << 20
"""Bytes kept of each stream, half from its head and half from its tail: enough for a log, small enough for 200 calls at once."""

DEFAULT_SPILL_LIMIT = 64 << 20
"""Bytes of each stream written to its spill file: `yes` writes gigabytes in a second and must not fill the disk."""

DEFAULT_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL: git needs a moment to take its lock file away, nobody waits longer happily."""

QUIET_ENVIRONMENT: Mapping[str, str] = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "TERM": "dumb",
    "NO_COLOR": "1",
}
"""Set over the host's environment because no one can answer a prompt, an editor or a pager. `LaunchPlan.env` wins over it."""


class Stdin(StrEnum):
    """Standard input that is neither data nor a file: nothing, the host's own descriptor 0, or whatever will be written."""

    NULL = "null"
    INHERIT = "inherit"
    OPEN = "open"
    """Written to while it runs (`Prepared.write`), until `Prepared.close_stdin` or the stop."""


MOST_CELLS = 0xFFFF
"""Rows or columns that struct winsize (ioctl_tty(2)) can hold."""


@dataclass(frozen=True, slots=True)
class WindowSize:
    """Of a terminal, in character cells. Raises ConfigError for what no terminal can have."""

    rows: int = 24
    columns: int = 80

    def __post_init__(self) -> None:
        if not (0 < self.rows <= MOST_CELLS and 0 < self.columns <= MOST_CELLS):
            raise ConfigError("window size", (self.rows, self.columns), f"rows and columns from 1 to {MOST_CELLS}")


class Leftovers(StrEnum):
    """What happens to processes that outlive the leader of their call."""

    KILL = "kill"
    KEEP = "keep"
    """They live on until they are stopped (`Prepared.stop`) or their supervisor closes. A call that is stopped keeps nobody."""


@dataclass(frozen=True, slots=True)
class Wrapping:
    """A program that contains the command and starts it: what stands at the gate is that program, not the command.

    `generations` are processes from the leader down that are the wrapper's own: the polite half of a stop passes them over, as
    they would take the command with them. `status_fd` is the number at which the wrapper says what became of the command, as
    bwrap(1) does for `--json-status-fd`. `profile` and `backend` name it in results; `enforced` holds for every call whose
    command ran, `missing` are guarantees it cannot give. `name` is the command's own.
    """

    profile: str
    backend: str
    name: str = ""
    generations: int = 0
    status_fd: int | None = None
    enforced: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """One process to start.

    `argv[0]` without a slash is searched in the call's own PATH, after the change into `cwd`. The environment is the host's at
    the time of `prepare`, then `QUIET_ENVIRONMENT`, then `env` (None as a value removes a name); with `clear_env` it is `env`
    alone, plus the marker of the call. `stdin` is a `Stdin` word, the bytes to feed, or the path of a file to open. `timeout` and
    `kill_after` are seconds; `timeout` counts from the moment of release. `pass_fds` maps descriptor numbers in the tool (3 and
    up) to open descriptors of the host: nothing else reaches the tool. `data_fds` are contents that it finds there to be read.
    `limits` are resource limits (setrlimit(2): number and most) of its own, below the host's. `become` are user and group to run
    as, for a host that is root. `wrapping` says that `argv` contains the command. `spill_dir` is a private folder for output past
    `output_limit`; without one that output is only counted.

    With `tty` the process gets a terminal of that size: it controls the session, and is stdout, stderr, and stdin too where that
    is bytes (they are typed) or `Stdin.OPEN`. All output comes as "stdout" then, as a terminal makes it (a line ends in CR LF),
    TERM is the host's, NO_COLOR is not set, and the ladder begins with two SIGINT. If its input is the terminal, somebody answers
    there, and nothing of `QUIET_ENVIRONMENT` is set.

    Raises:
        ConfigError: an empty argv, a time that is not a number of seconds, or a negative limit.
    """

    argv: tuple[str | bytes, ...]
    env: Environment = field(default_factory=dict)
    clear_env: bool = False
    cwd: str | bytes | None = None
    stdin: Stdin | bytes | Path = Stdin.NULL
    output_limit: int = DEFAULT_OUTPUT_LIMIT
    kill_after: float = DEFAULT_GRACE
    timeout: float | None = None
    leftovers: Leftovers = Leftovers.KILL
    pass_fds: Mapping[int, int] = field(default_factory=dict)
    spill_dir: Path | None = None
    spill_limit: int = DEFAULT_SPILL_LIMIT
    tty: WindowSize | None = None
    data_fds: Mapping[int, bytes] = field(default_factory=dict)
    limits: Mapping[int, int] = field(default_factory=dict)
    become: tuple[int, int] | None = None
    wrapping: Wrapping | None = None

    def __post_init__(self) -> None:
        if not self.argv:
            raise ConfigError("argv", self.argv, "a command and its arguments")
        if self.timeout is not None and not (self.timeout > 0 and math.isfinite(self.timeout)):
            raise ConfigError("timeout", self.timeout, "a finite number of seconds above 0, or None")
        if not (self.kill_after >= 0 and math.isfinite(self.kill_after)):
            raise ConfigError("kill_after", self.kill_after, "a finite number of seconds, 0 or more")
        if self.output_limit < 0 or self.spill_limit < 0:
            raise ConfigError("output_limit or spill_limit", min(self.output_limit, self.spill_limit), "0 or more bytes")
        if any(number < STREAMS for number in (*self.pass_fds, *self.data_fds)):
            raise ConfigError("pass_fds", sorted(self.pass_fds), "numbers from 3 up; 0, 1 and 2 are the streams")

    @property
    def types_input(self) -> bool:
        """Whether its standard input is its terminal."""
        return self.tty is not None and (self.stdin is Stdin.OPEN or isinstance(self.stdin, bytes))
