"""The bubblewrap backend: from a table of levels to the options of bwrap(1). Looks at the host, changes nothing.

The options travel on a descriptor (`--args`), because argv can be read by every user of the machine, and are limited in length.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import final

from toolrunner.sandbox.profile import NetworkMode
from toolrunner.sandbox.user import User, can_reach
from toolrunner.sandbox.view import ROOT, SYSTEM, Table, pins
from toolrunner.sandbox.words import Level

ARGS_FD, STATUS_FD, FIRST_DATA_FD = 3, 4, 5
"""Descriptors in bwrap, which closes what it was told of before it runs the command."""

MOST_HIDDEN_FILES = 200
"""Each takes a descriptor of the message that carries the launch (SCM_MAX_FD is 253, unix(7))."""

OPEN_FOLDER, SHUT_FOLDER, WAY_THROUGH = "0555", "0000", "0111"
"""Modes of what covers a folder: seen to be empty; neither listed nor entered; entered, because something below it is open."""

NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")


class TooManyRules(Exception):
    """More files are to be hidden than one launch can carry descriptors for."""


@final
@dataclass(slots=True)
class Mounts:
    """Options, and the contents of the descriptors they name. `covers` are made read-only when everything is in its place."""

    options: list[str] = field(default_factory=list)
    data: dict[int, bytes] = field(default_factory=dict)
    covers: list[str] = field(default_factory=list)

    def place(self, path: str, level: Level, *, is_way: bool) -> None:
        """Mount one rule. What does not exist is left out: nothing can be mounted there without making it on the host."""
        if level is Level.WRITE and os.path.exists(path):
            self.options += ["--bind", path, path]
        elif level is Level.READ and os.path.exists(path):
            self.options += ["--ro-bind", path, path]
        elif level is Level.PRIVATE:
            self.options += ["--perms", "1777", "--tmpfs", path]
        elif level in (Level.EMPTY, Level.HIDDEN) and os.path.isdir(path):
            shut = WAY_THROUGH if is_way else SHUT_FOLDER
            self.options += ["--perms", OPEN_FOLDER if level is Level.EMPTY else shut, "--tmpfs", path]
            self.covers.append(path)
        elif level in (Level.EMPTY, Level.HIDDEN) and os.path.exists(path):
            self._hide_file(path)

    def _hide_file(self, path: str) -> None:
        # A file that nobody may open, and not /dev/null: that is a device, which git refuses to look at.
        number = FIRST_DATA_FD + len(self.data)
        if len(self.data) >= MOST_HIDDEN_FILES:
            raise TooManyRules
        self.data[number] = b""
        self.options += ["--perms", SHUT_FOLDER, "--ro-bind-data", str(number), path]


def mounts(table: Table, user: User) -> Mounts:
    """The file system of a call. Deeper mounts come later, because a later one hides what it is mounted over."""
    result = Mounts()
    rules = [rule for rule in table.rules() if not _is_needless(table, rule, user)]
    top = rules[0][1]
    if top >= Level.READ:
        result.options += ["--bind" if top is Level.WRITE else "--ro-bind", ROOT, ROOT]
    else:
        result.covers.append(ROOT)  # bwrap's own empty one
    # /proc is of the new pid namespace. What of it the kernel itself would obey is root's only, and root is not in here.
    result.options += ["--dev", "/dev", "--proc", "/proc"]
    if os.path.isdir("/proc/sys"):
        result.options += ["--ro-bind", "/proc/sys", "/proc/sys"]
    kept = {path: Level.WRITE for path in pins(table) if os.path.isdir(path) and can_reach(path, user)}
    for path, level in _ordered(rules, kept):
        if path != ROOT and path in SYSTEM and os.path.islink(path):
            if top < Level.READ:
                result.options += ["--symlink", os.readlink(path), path]
        elif path != ROOT:
            is_way = any(other.startswith(path + os.sep) and deeper > Level.EMPTY for other, deeper in rules)
            result.place(path, level, is_way=is_way)
    for path in reversed(result.covers):
        result.options += ["--remount-ro", path]
    return result


def _is_needless(table: Table, rule: tuple[str, Level], user: User) -> bool:
    """Whether nothing of the host is there to be shown or hidden: this user could not get there, or it is covered already."""
    path, level = rule
    if path == ROOT or level is Level.PRIVATE:
        return False
    covered = level <= Level.EMPTY and table.level(os.path.dirname(path)) <= Level.PRIVATE
    return covered or not can_reach(path, user)


def _ordered(rules: list[tuple[str, Level]], pinned: dict[str, Level]) -> Iterator[tuple[str, Level]]:
    everything = {**pinned, **dict(rules)}
    return iter(sorted(everything.items(), key=lambda rule: (rule[0].count(os.sep), rule[0])))


def options(table: Table, user: User, network: NetworkMode, cwd: str, *, has_terminal: bool, nests: bool) -> Mounts:
    """All options but the command. `nests` False = bwrap here can forbid further user namespaces inside."""
    result = mounts(table, user)
    result.options = [
        *NAMESPACES,
        *([] if nests else ["--disable-userns"]),
        *(["--unshare-net"] if network is NetworkMode.NONE else []),
        "--die-with-parent",
        # A terminal of the call's own has to stay its controlling one; it is not the host's.
        *([] if has_terminal else ["--new-session"]),
        *("--cap-drop", "ALL"),
        *("--json-status-fd", str(STATUS_FD)),
        *result.options,
        *("--chdir", cwd),
    ]
    return result


def argv(binary: str, command: tuple[str | bytes, ...]) -> tuple[str | bytes, ...]:
    """What is executed in the command's place."""
    return (binary, "--args", str(ARGS_FD), "--", *command)


def packed(words: list[str]) -> bytes:
    """Options as `--args` reads them: each ended by a NUL."""
    return b"".join(os.fsencode(word) + b"\0" for word in words)
