"""Subject: the call that is judged, with its surroundings; and by which names arguments are known. Frozen values; no state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from toolrunner.facts import Annotations

NO_PROFILE = "none"
"""The profile of a call that runs without a sandbox."""

_ARGUMENTS: Mapping[str, Any] = {}


@final
@dataclass(frozen=True, slots=True)
class Subject:
    """One call. `arguments` with the tool's defaults; the rest is what is known of a command before it is started.

    `cwd` is where relative paths begin (None: where the policy says), `argv` or `line` what would be run, `env` the names of the
    variables that the call sets or removes, `profile` the sandbox profile it runs in.
    """

    tool: str
    annotations: Annotations = field(default_factory=Annotations)
    arguments: Mapping[str, Any] = field(default_factory=lambda: _ARGUMENTS)
    cwd: str | None = None
    argv: tuple[str, ...] | None = None
    line: str | None = None
    env: tuple[str, ...] = ()
    profile: str = NO_PROFILE


@final
@dataclass(frozen=True, slots=True)
class Names:
    """Names of arguments that hold paths, hosts or URLs, and command lines, at any depth."""

    paths: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    commands: frozenset[str] = frozenset()

    def __or__(self, other: "Names") -> "Names":
        return Names(self.paths | other.paths, self.hosts | other.hosts, self.commands | other.commands)


NAMES = Names(
    paths=frozenset({
        "path", "paths", "file", "files", "filename", "file_name", "file_path", "filepath", "dir", "directory",
        "folder", "root", "roots", "cwd", "workdir", "source", "src", "destination", "dest", "dst", "target_path",
        "old_path", "new_path", "output_path", "input_path", "watch",
    }),
    hosts=frozenset({
        "url", "urls", "uri", "uris", "href", "link", "host", "hosts", "hostname", "domain", "endpoint", "base_url",
        "address", "server",
    }),
    commands=frozenset({
        "command", "commands", "cmd", "argv", "command_line", "commandline", "shell_command",
    }),
)  # fmt: skip
"""What tools call such arguments. A policy file adds its own (`[names]`)."""
