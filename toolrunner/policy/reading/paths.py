"""Patterns over paths, and a text as the paths it can mean. It follows symbolic links when asked; no state.

What was judged can be changed before it is used: these rules are for asking, a sandbox is what holds.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from toolrunner.errors import PolicyError

LONGEST = 4096
"""PATH_MAX (limits.h): a longer text can be no path for the kernel."""

ROOT = "/"
_SPECIAL = ("", ".", "..")


@final
@dataclass(frozen=True, slots=True)
class PathPattern:
    """`*` is anything in one name, `**` any number of names: `src/**` is the folder and all below. Only these are special.

    It begins at the root (`/etc`), at home (`~/.ssh`) or in the workspace (`src`, `./src`). Raises PolicyError for anything else.
    """

    text: str

    def __post_init__(self) -> None:
        text = self.text
        if not isinstance(text, str) or not text or text != text.strip() or "\0" in text or (text != ROOT and text.endswith("/")):
            raise PolicyError(f"{text!r} is no pattern of a path; write dir/** for a folder and all below it")
        for part in text.split("/"):
            if part == ".." or ("**" in part and part != "**"):
                raise PolicyError(f"{text!r}: {part!r} cannot stand in a pattern of a path")
        if text.startswith("~") and text != "~" and not text.startswith("~/"):
            raise PolicyError(f"{text!r}: only ~/ is known, the home of whoever runs this")

    def compiled(self, workspace: str, *, strict: bool) -> tuple["CompiledPath", ...]:
        """For matching. `workspace` is an absolute path. `strict` is for rules that ask or forbid.

        Those match the path as it is written and as it is resolved. A rule that allows matches resolved paths only, and a
        symbolic link in the workspace, which anybody may have put there, does not move it.
        """
        base, parts = self._placed(workspace)
        fixed = 0
        while fixed < len(parts) and "*" not in parts[fixed]:
            fixed += 1
        literal = _joined(base, parts[:fixed])
        fully = os.path.realpath(literal)
        real = _joined(os.path.realpath(workspace), parts[:fixed]) if base == workspace else fully
        rest = parts[fixed:]
        prefixes = dict.fromkeys((literal, real, fully) if strict else (real,))
        name = next((part for part in rest if "*" not in part), None)
        return tuple(CompiledPath(prefix, _regex(prefix, rest), name) for prefix in prefixes)

    def _placed(self, workspace: str) -> tuple[str, list[str]]:
        text = self.text
        if text.startswith("/"):
            base = ROOT
        elif text.startswith("~"):
            base, text = _home(text), text[1:]
        else:
            base = workspace
        return base, [part for part in text.split("/") if part not in ("", ".")]


@final
@dataclass(frozen=True, slots=True)
class CompiledPath:
    """A pattern whose first names are fixed: only paths at or below `prefix` can match, with `name` among their names."""

    prefix: str
    regex: re.Pattern[str]
    name: str | None = None

    @property
    def key(self) -> str:
        """Only a path with this among its `lookups` can match."""
        return f"part {self.name}" if self.name is not None else f"path {self.prefix}"


def _home(text: str) -> str:
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise PolicyError(f"{text!r}: it is not known whose home this is; set HOME, or write the whole path")
    return home


def _joined(base: str, parts: list[str]) -> str:
    return _plain(os.path.join(base, *parts))


def _regex(prefix: str, rest: list[str]) -> re.Pattern[str]:
    text = "" if prefix == ROOT else re.escape(prefix)
    for part in rest:
        text += "(?:/[^/]+)*" if part == "**" else "/" + _name(part)
    return re.compile(text or "/", re.DOTALL)


def _name(part: str) -> str:
    return "[^/]+" if part == "*" else "[^/]*".join(map(re.escape, part.split("*")))


def _plain(path: str) -> str:
    """Without `.`, `..` and double slashes; normpath leaves two at the beginning, which mean one here."""
    path = os.path.normpath(path)
    return path[1:] if path.startswith("//") else path


def meanings(text: str, base: str) -> tuple[str, ...]:
    """The paths that a text can mean in the folder `base`, resolved and as written. None for what can be no path."""
    if "/" not in text and text not in _SPECIAL and text[0] != "~" and is_readable(text) and text[:5].lower() != "file:":
        # Most texts are such: a name in `base`, which is resolved already, needs one look and no folder on the way any.
        whole = f"{base}/{text}" if base != ROOT else base + text
        return (whole,) if not os.path.islink(whole) else (os.path.realpath(whole), whole)
    return tuple(dict.fromkeys(path for whole in _wholes(text, base) for path in (os.path.realpath(whole), _plain(whole))))


def resolved(text: str, base: str) -> tuple[str, ...]:
    """The same, with links followed only."""
    return tuple(dict.fromkeys(os.path.realpath(whole) for whole in _wholes(text, base)))


def is_readable(text: str) -> bool:
    """Whether it can be a path at all."""
    return len(text) <= LONGEST and "\0" not in text


def _wholes(text: str, base: str) -> Iterator[str]:
    if not is_readable(text):
        return
    if text[:5].lower() == "file:":
        text = re.sub(r"^/*(?=/)", "", text[5:]) or ROOT
    yield os.path.join(base, text)
    if text.startswith("~"):  # the tool may take it as it is, or as a shell does
        yield os.path.join(base, os.path.expanduser(text))


def lookups(path: str) -> Iterator[str]:
    """The path, every folder above it, and every name in it, as rules are looked up by."""
    yield "path /"
    above = ""
    for part in path.split("/"):
        if part:
            above += "/" + part
            yield "part " + part
            yield "path " + above
