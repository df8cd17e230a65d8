"""One file and those it extends, read and merged into one table of values. State: what was read, while it is read."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any, final

from toolrunner.config.documents import SUFFIXES, Found, Kind, Origin
from toolrunner.config.search import find, named
from toolrunner.config.trust import content

DEPTH_LIMIT = 8
"""Files in one chain of `extends`: more than a person can follow."""

_OWN_KEYS = frozenset({"schema", "summary", "extends", "examples"})  # say what one file is, so nobody inherits them


@final
class Chain:
    """One file and what it extends, while they are read."""

    def __init__(self, kind: Kind, joined: frozenset[str]) -> None:
        self.kind, self.joined = kind, joined
        self.files: list[Path] = []
        self.contents: list[bytes] = []

    def read(self, found: Found, depth: int) -> dict[str, Any]:
        if found.path in self.files or depth >= DEPTH_LIMIT:
            way = " -> ".join(str(path) for path in (*self.files, found.path))
            raise self.kind.error(f"{self.kind.noun} {found.path}: `extends` leads in a circle or too far: {way}")
        found_bytes = content(self.kind, found)
        self.files.append(found.path)
        self.contents.append(found_bytes)
        return self.extend(_parsed(self.kind, found.path, found_bytes), found, depth)

    def extend(self, values: dict[str, Any], found: Found, depth: int) -> dict[str, Any]:
        base = values.get("extends")
        if not isinstance(base, str):  # the model complains if it is there and no text
            return values
        below = self.read(self._base(base, found), depth + 1)
        return _merged({key: value for key, value in below.items() if key not in _OWN_KEYS}, values, self.joined, "")

    def _base(self, base: str, found: Found) -> Found:
        if os.sep in base or base.endswith(SUFFIXES):
            if found.origin is Origin.WORKSPACE:
                raise self.kind.error(f"{self.kind.noun} {found.path}: a workspace's file extends names only, not {base!r}")
            path = Path(os.path.normpath(found.path.parent / Path(base).expanduser()))
            return Found(path.stem, path, found.origin if found.origin is not Origin.GIVEN else Origin.EXPLICIT)
        other = named(self.kind, base, tuple(self.files))
        return other if other is not None else find(self.kind, base)


def _merged(below: dict[str, Any], above: dict[str, Any], joined: frozenset[str], prefix: str) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            result[key] = _merged(old, value, joined, f"{prefix}{key}.")
        elif isinstance(value, list) and isinstance(old, list) and prefix + key in joined:
            result[key] = value + old
        else:
            result[key] = value
    return result


def _parsed(kind: Kind, path: Path, raw: bytes) -> dict[str, Any]:
    try:
        text = raw.decode("utf-8")
        values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, JSONDecodeError and UnicodeDecodeError are ValueErrors
        raise kind.error(f"{kind.noun} {path}: {error}") from error
    if not isinstance(values, dict):
        raise kind.error(f"{kind.noun} {path}: it holds no table of keys")
    return values
