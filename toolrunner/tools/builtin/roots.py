"""The folders that the file tools may touch, and which of them a path lies in. Frozen; no state.

Everything here is about the text of paths. That a path does not leave its root while it is followed is `walking`'s business.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, final

from pydantic import AfterValidator, Field

from toolrunner.errors import ConfigError, ToolError

MOST_PATH = 4096
"""Bytes of a path at the most: PATH_MAX of Linux, its final NUL counted (limits.h)."""

Folders = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""One folder or several, as a host names them."""


def _is_path(text: str) -> str:
    if "\0" in text:
        raise ValueError("a path without NUL characters")
    try:
        raw = os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError("a path without lone surrogates") from None
    if len(raw) >= MOST_PATH:
        raise ValueError(f"a path of fewer than {MOST_PATH} bytes")
    return text


PathText = Annotated[str, Field(min_length=1), AfterValidator(_is_path)]
"""A path as a model sends it: relative to the first root, or absolute and inside one of them."""


@final
@dataclass(frozen=True, slots=True)
class Roots:
    """`writable` may be read and changed, `readable` only read: absolute paths without symlinks.

    `spelled` are the same folders as the host named them: a model that was told `/tmp/work` may say so, although it is a symlink.
    """

    writable: tuple[str, ...]
    readable: tuple[str, ...] = ()
    spelled: tuple[tuple[str, str], ...] = ()

    @property
    def first(self) -> str:
        """Where relative paths start."""
        return self.writable[0]

    def absolute(self, path: str) -> str:
        """`path` from the first root, as text: nothing is followed, and `..` stays."""
        return os.path.join(self.first, path)

    def of(self, path: str) -> tuple[str, str] | None:
        """The root that an absolute path lies in by its text, and what is below it; None when it lies in none."""
        names = [(root, root) for root in (*self.writable, *self.readable)]
        for name, root in sorted([*names, *self.spelled], key=lambda pair: len(pair[0]), reverse=True):
            if path == name:
                return root, ""
            if path.startswith(name.rstrip("/") + "/"):
                return root, path[len(name.rstrip("/")) + 1 :]
        return None

    def is_writable(self, real: str) -> bool:
        """Whether an absolute path without symlinks may be changed: the innermost root decides."""
        inside = self.of(real)
        return inside is not None and inside[0] in self.writable

    def shown(self, real: str) -> str:
        """A path for the model: from the first root if it lies there, else absolute."""
        inside = self.of(real)
        return printable((inside[1] or ".") if inside is not None and inside[0] == self.first else real)

    def key(self, path: str) -> str:
        """The name of a file that is the same for all spellings of its path, for locks. It is no permission."""
        return "file:" + printable(os.path.realpath(self.absolute(path)))

    def outside(self, path: str) -> ToolError:
        """The refusal of a path that leads out of the roots."""
        inside = ", ".join(printable(root) for root in (*self.writable, *self.readable))
        return ToolError(f"{printable(path)} is outside the folders that may be used; use a path inside {inside}", kind="outside")


def read_roots(writable: Folders, readable: Folders = ()) -> Roots:
    """The roots as a host names them. A readable one need not be there yet.

    Raises:
        ConfigError: no root, something that is no path, or a writable root that is no folder.
    """
    given, more = _paths("roots", writable), _paths("readable", readable)
    if not given:
        raise ConfigError("roots", writable, "at least one folder")
    for one in given:
        if not os.path.isdir(one):
            raise ConfigError("a root", one, "a folder that is there")
    every = [os.path.abspath(one) for one in (*given, *more)]
    real = tuple(os.path.realpath(one) for one in given)
    # Once per folder: one that is named as both may be written to.
    only_read = tuple(one for one in map(os.path.realpath, more) if one not in real)
    spelled = tuple((one, os.path.realpath(one)) for one in every if one != os.path.realpath(one))
    return Roots(tuple(dict.fromkeys(real)), tuple(dict.fromkeys(only_read)), spelled)


def _paths(what: str, folders: Folders) -> list[str]:
    found = [folders] if isinstance(folders, str | os.PathLike) else list(folders)
    for one in found:
        if not isinstance(one, str | os.PathLike) or not isinstance(os.fspath(one), str) or not os.fspath(one):
            raise ConfigError(what, one, "the path of a folder")
    return [os.fspath(one) for one in found]


def printable(path: str) -> str:
    """A path that can be written as UTF-8: bytes of a name that are no UTF-8 are shown as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
