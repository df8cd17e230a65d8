"""Command: what the function of a command tool returns, the process that the runner is to start and supervise.

No state. It describes only: nothing is looked up, opened or started here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import final

from toolrunner.errors import ConfigError
from toolrunner.process import DEFAULT_OUTPUT_LIMIT, Leftovers, Sink, Stdin, WindowSize
from toolrunner.sandbox import Sandbox


@final
@dataclass(frozen=True, slots=True)
class Command:
    """One process to start instead of a Python body.

    `argv[0]` without a slash is searched in the call's PATH. `cwd` is the runner's if None. `env` is laid over the runner's
    environment; None as a value removes a name. `stdin` is fed and then closed (a str as UTF-8), or opened (a `Path`), or the
    host's own (`Stdin.INHERIT`); None gives /dev/null. `timeout` and `kill_after` are seconds and win over the tool's own. Exit
    statuses in `ok` are a success. `watch` adds folders to be scanned for changes. `sink` takes the output in full while it comes
    and holds the command back while it is slow; an abort releases it. `tty` gives it a terminal, of 24 rows and 80 columns if no
    size is named; all its output is in stdout then. What outlives the command is ended, or kept as a job (`leftovers`). `sandbox`
    contains it: a profile's name or file, or a `Sandbox`; it can only take away from what the runner's own allows.

    Raises:
        ConfigError: an empty or non-text argv, a NUL byte, a bad environment name, a time that is no number of seconds.
        ProfileError: a sandbox that does not load.
    """

    argv: Sequence[str]
    cwd: str | Path | None = None
    env: Mapping[str, str | None] = field(default_factory=dict)
    stdin: bytes | str | Path | Stdin | None = None
    timeout: float | None = None
    kill_after: float | None = None
    output_limit: int = DEFAULT_OUTPUT_LIMIT
    ok: Sequence[int] = (0,)
    watch: Sequence[str | Path] = ()
    sink: Sink | None = field(default=None, compare=False)
    tty: bool | WindowSize = False
    leftovers: Leftovers | str = Leftovers.KILL
    sandbox: Sandbox | str | None = None

    def __post_init__(self) -> None:
        _check_argv(self.argv)
        _check_env(self.env)
        if self.cwd is not None:
            _check_text("cwd", self.cwd)
        if self.stdin is not None and not isinstance(self.stdin, bytes | str | Path):
            raise ConfigError("stdin", self.stdin, "bytes, a str, a Path, Stdin.INHERIT or None")
        if isinstance(self.stdin, str):
            _check_encodable("stdin", self.stdin)
        _check_times(self.timeout, self.kill_after)
        if not _is_int(self.output_limit) or self.output_limit < 0:
            raise ConfigError("output_limit", self.output_limit, "0 or more bytes")
        if not all(_is_int(status) and 0 <= status <= 255 for status in self.ok):  # noqa: PLR2004  # wait(2): WEXITSTATUS is 8 bits
            raise ConfigError("ok", self.ok, "exit statuses from 0 to 255")
        words = [str(word) for word in Leftovers]
        if self.leftovers not in words:
            raise ConfigError("leftovers", self.leftovers, " or ".join(map(repr, words)))
        _check_kind("tty", self.tty, (bool, WindowSize), "True, False or a WindowSize")
        watch = (self.watch,) if isinstance(self.watch, str | Path) else tuple(self.watch)
        for root in watch:
            _check_text("watch", root)
        # Copies, so that nobody can change what was validated, judged and approved.
        object.__setattr__(self, "argv", tuple(self.argv))
        object.__setattr__(self, "env", MappingProxyType(dict(self.env)))
        object.__setattr__(self, "ok", tuple(self.ok))
        object.__setattr__(self, "watch", watch)
        object.__setattr__(self, "leftovers", Leftovers(self.leftovers))
        object.__setattr__(self, "sandbox", Sandbox(self.sandbox) if isinstance(self.sandbox, str) else self.sandbox)

    @property
    def containing(self) -> Sandbox | None:
        """Its own sandbox, loaded when it was made."""
        return None if isinstance(self.sandbox, str) else self.sandbox


def _check_kind(what: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    if not isinstance(value, kinds):
        raise ConfigError(what, value, expected)


def _check_argv(argv: object) -> None:
    if isinstance(argv, str | bytes) or not isinstance(argv, Sequence):
        raise ConfigError("argv", argv, 'a sequence of strings, ("ls", "-l") say')
    if not argv or not argv[0]:
        raise ConfigError("argv", argv, "a command and its arguments")
    for word in argv:
        if not isinstance(word, str):
            raise ConfigError("argv", argv, f"strings only, not {type(word).__name__}")
        _check_text("argv", word)


def _check_env(env: object) -> None:
    if not isinstance(env, Mapping):
        raise ConfigError("env", env, "a mapping of names to strings")
    for name, value in env.items():
        if not isinstance(name, str) or not name or "=" in name:
            raise ConfigError("env", name, "names that are strings, not empty and without '='")
        _check_text("env", name)
        if value is not None:
            _check_text(f"env {name}", value)


def _check_text(what: str, value: object) -> None:
    if not isinstance(value, str | Path):
        raise ConfigError(what, value, "a string")
    text = str(value)
    if "\0" in text:  # execve(2) takes C strings: the rest would silently be cut off
        raise ConfigError(what, value, "text without NUL characters")
    # What os.fsencode would do at the start of the process; a lone surrogate outside its range is found here instead.
    _check_encodable(what, text, "surrogateescape")


def _check_encodable(what: str, text: str, errors: str = "strict") -> None:
    try:
        text.encode("utf-8", errors)
    except UnicodeEncodeError:
        raise ConfigError(what, text, "text that can be encoded") from None


def _check_times(timeout: float | None, kill_after: float | None) -> None:
    if timeout is not None and not (_is_number(timeout) and timeout > 0):
        raise ConfigError("timeout", timeout, "a finite number of seconds above 0, or None")
    if kill_after is not None and not (_is_number(kill_after) and kill_after >= 0):
        raise ConfigError("kill_after", kill_after, "a finite number of seconds, 0 or more, or None")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
