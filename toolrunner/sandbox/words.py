"""The closed words of sandboxes: what can be guaranteed, what can contain, and what may be done with a path."""

from enum import IntEnum, StrEnum


class Guarantee(StrEnum):
    """What a backend can be asked to hold. `require` names these; so do `enforced` and `missing` of a result."""

    FS_READ = "fs_read"
    """What the profile hides cannot be read."""
    FS_WRITE = "fs_write"
    """Nothing but what the profile names can be changed."""
    PROTECT_PATHS = "protect_paths"
    """Files below a write root that other programs execute (hooks, editor and agent settings) stay as they are."""
    NETWORK = "network"
    """No way out, also not to this machine's own ports and abstract sockets."""
    UNIX_SOCKETS = "unix_sockets"
    """No socket that has a path can be connected to, wherever it lies."""
    KILL_TREE = "kill_tree"
    """Everything it started ends with it, whatever it does."""
    LIMITS_MEMORY = "limits_memory"
    LIMITS_PIDS = "limits_pids"
    ENV = "env"
    """Variables that the profile keeps back cannot be read, also not from other processes."""
    TTY = "tty"
    """Nothing can be typed into the host's terminal."""


class BackendName(StrEnum):
    """What contains a process."""

    AUTO = "auto"
    """The best that works here; never none."""
    BUBBLEWRAP = "bubblewrap"
    NONE = "none"
    """Nothing does. Only by its name."""


class Level(IntEnum):
    """What of the host may be reached at a path; a lower one exposes less."""

    HIDDEN = 0
    """Neither read nor written; entering it is refused."""
    EMPTY = 1
    """A folder with nothing in it."""
    PRIVATE = 2
    """A folder of the call's own, empty at first and gone afterwards."""
    READ = 3
    WRITE = 4
