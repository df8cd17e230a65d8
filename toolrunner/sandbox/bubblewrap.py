"""The bubblewrap backend: from a table of levels to the options of bwrap(1). Looks at the host, changes nothing.

The options travel on a descriptor (`--args`), because argv can be read by every user of the machine, and are limited in length.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import final

from toolrunner.sandbox.overlay import Layer
from toolrunner.sandbox.profile import NetworkMode
from toolrunner.sandbox.user import User, can_reach
from toolrunner.sandbox.view import ROOT, SYSTEM, Table, is_within, pins
from toolrunner.sandbox.words import Level

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
    """Options, and the contents of the descriptors they name. `covers` are made read-only when everything is in its place.

    `numbers` are free ones for descriptors. bwrap closes those it was told of before it runs the command, and leaves the others.
    """

    numbers: Iterator[int]
    layer: Layer | None = None
    options: list[str] = field(default_factory=list)
    data: dict[int, bytes] = field(default_factory=dict)
    covers: list[str] = field(default_factory=list)

    def place(self, path: str, level: Level, *, is_way: bool) -> None:
        """Mount one rule. What does not exist is left out: nothing can be mounted there without making it on the host."""
        if self.layer is not None and path == self.layer.lower:
            self.options += ["--overlay-src", path, "--overlay", self.layer.upper, self.layer.work, path]
        elif level is Level.WRITE and os.path.exists(path):
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
        number = next(self.numbers)
        if len(self.data) >= MOST_HIDDEN_FILES:
            raise TooManyRules
        self.data[number] = b""
        self.options += ["--perms", SHUT_FOLDER, "--ro-bind-data", str(number), path]


def mounts(table: Table, user: User, numbers: Iterator[int], layer: Layer | None = None) -> Mounts:
    """The file system of a call. Deeper mounts come later, because a later one hides what it is mounted over."""
    result = Mounts(numbers, layer)
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
    for path, level in _ordered(rules, _pinned(table, user, layer)):
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


def _pinned(table: Table, user: User, layer: Layer | None) -> dict[str, Level]:
    """Folders to be mounted onto themselves. In a layer that would be the host's; there, what is shut is not carried over."""
    return {
        path: Level.WRITE
        for path in pins(table)
        if os.path.isdir(path) and can_reach(path, user) and not (layer is not None and is_within(path, layer.lower))
    }


def _ordered(rules: list[tuple[str, Level]], pinned: dict[str, Level]) -> Iterator[tuple[str, Level]]:
    everything = {**pinned, **dict(rules)}
    return iter(sorted(everything.items(), key=lambda rule: (rule[0].count(os.sep), rule[0])))


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """What of a launch the options depend on, besides its mounts. `taken` are descriptor numbers that the command itself gets."""

    network: NetworkMode
    cwd: str
    has_terminal: bool
    forbids_nesting: bool
    taken: frozenset[int] = frozenset()
    layer: Layer | None = None
    """Takes what the command writes into the working directory."""


@final
@dataclass(frozen=True, slots=True)
class Start:
    """How bwrap is started: its first words, contents of descriptors, and the one it tells what became of the command."""

    words: tuple[str, ...]
    data: Mapping[int, bytes]
    status_fd: int


def start(binary: str, table: Table, user: User, shape: Shape) -> Start:
    """Everything but the command. Raises TooManyRules."""
    numbers = (number for number in count(3) if number not in shape.taken)
    args_fd, status_fd = next(numbers), next(numbers)
    inside = mounts(table, user, numbers, shape.layer)
    words = [
        *NAMESPACES,
        *(["--disable-userns"] if shape.forbids_nesting else []),
        *(["--unshare-net"] if shape.network is NetworkMode.NONE else []),
        "--die-with-parent",
        # A terminal of the call's own has to stay its controlling one; it is not the host's.
        *([] if shape.has_terminal else ["--new-session"]),
        *("--cap-drop", "ALL"),
        *("--json-status-fd", str(status_fd)),
        *inside.options,
        *("--chdir", shape.cwd),
    ]
    packed = b"".join(os.fsencode(word) + b"\0" for word in words)
    return Start((binary, "--args", str(args_fd), "--"), {args_fd: packed, **inside.data}, status_fd)
