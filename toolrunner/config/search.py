"""Where a name or a path leads: the user's files come before those that are shipped. No state."""

import difflib
import os
import re
from pathlib import Path

from toolrunner.config.documents import SUFFIXES, Found, Kind, Origin

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def find(kind: Kind, name: str | os.PathLike[str]) -> Found:
    """Where a name or a path leads. A path has a slash or a suffix, or is no str. Raises as `load` does."""
    if not isinstance(name, str) or os.sep in name or name.endswith(SUFFIXES):
        path = Path(name).expanduser().absolute()
        if path.suffix not in SUFFIXES:
            raise kind.error(f"{kind.noun} {path}: a file's name ends in {' or '.join(SUFFIXES)}")
        return Found(path.stem, path, Origin.EXPLICIT)
    found = named(kind, name, ())
    if found is None:
        known = [each.name for each in listing(kind)]
        hint = near(name, known) or f" (there are {', '.join(known)})"
        raise kind.error(f"there is no {kind.noun} named {name!r}{hint}; `{user_folder(kind)}` is where yours are looked for")
    return found


def listing(kind: Kind) -> tuple[Found, ...]:
    """Every name that `load` would find, sorted; a user's file hides a shipped one."""
    seen: dict[str, Found] = {}
    for folder, origin in _folders(kind):
        for path in sorted(folder.glob("*")) if folder.is_dir() else ():
            if path.suffix in SUFFIXES and _NAME.fullmatch(path.stem):
                seen.setdefault(path.stem, Found(path.stem, path, origin))
    return tuple(seen[name] for name in sorted(seen))


def user_folder(kind: Kind) -> Path:
    """Where this user keeps files of a kind (XDG Base Directory: an unset or relative XDG_CONFIG_HOME is ~/.config)."""
    return config_home() / kind.folder


def config_home() -> Path:
    """The user's configuration folder of ours; it need not exist."""
    base = Path(os.environ.get("XDG_CONFIG_HOME") or ".")
    return (base if base.is_absolute() else Path.home() / ".config") / "toolrunner"


def shipped_folder(kind: Kind) -> Path:
    """The files that come with this version: in the wheel below the package, in a checkout beside it."""
    package = Path(__file__).absolute().parent.parent
    shipped = package / "_shipped" / kind.folder
    return shipped if shipped.is_dir() else package.parent / kind.folder


def _folders(kind: Kind) -> tuple[tuple[Path, Origin], ...]:
    return (user_folder(kind), Origin.USER), (shipped_folder(kind), Origin.SHIPPED)


def named(kind: Kind, name: str, passed: tuple[Path, ...]) -> Found | None:
    """`passed` are files of the chain so far: a user's `strict` that extends `strict` means the shipped one."""
    if not _NAME.fullmatch(name):
        raise kind.error(f"{kind.noun} {name!r}: a name is made of small letters, digits, dashes and underscores")
    for folder, origin in _folders(kind):
        for suffix in SUFFIXES:
            path = folder / (name + suffix)
            if path not in passed and os.path.lexists(path):
                return Found(name, path, origin)
    return None


def near(word: str, known: list[str]) -> str:
    """The known word that was probably meant, as the end of a sentence; nothing if none is like it."""
    match = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean {match[0]!r}?" if match else ""
