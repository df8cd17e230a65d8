"""Loads documents: found, read, extended, checked, hashed. No state."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolrunner.config.chain import Chain
from toolrunner.config.checking import check
from toolrunner.config.documents import D, Found, Kind, Loaded, Origin
from toolrunner.config.search import find


def load(kind: Kind, model: type[D], name: str | os.PathLike[str], *, joined: frozenset[str] = frozenset()) -> Loaded[D]:
    """Find, read, extend and check one document.

    Tables are merged key by key with what is extended, the extending file winning; everything else is replaced, but lists whose
    dotted key is in `joined`, which are put in front of the extended ones.

    Raises:
        PolicyError, ProfileError: by kind; with the file, the key and what to do.
    """
    return _build(kind, model, find(kind, name), joined)


def of_workspace(kind: Kind, model: type[D], workspace: Path, *, joined: frozenset[str] = frozenset()) -> Loaded[D] | None:
    """The document of a workspace, `.toolrunner/NOUN.toml`, or None. It extends names only. Raises as `load` does."""
    path = workspace / ".toolrunner" / f"{kind.noun}.toml"
    if not os.path.lexists(path):
        return None
    return _build(kind, model, Found(kind.noun, path, Origin.WORKSPACE), joined)


def given(kind: Kind, model: type[D], values: Mapping[str, Any], *, joined: frozenset[str] = frozenset()) -> Loaded[D]:
    """A document out of values that the host has in its code; checked as a file is. Raises as `load` does."""
    chain = Chain(kind, joined)
    merged = chain.extend(dict(values), Found("given", Path(), Origin.GIVEN), 0)
    text = json.dumps(merged, sort_keys=True, default=str)
    return Loaded("given", check(kind, model, merged, "given"), Origin.GIVEN, tuple(chain.files), _digest([text.encode()]))


def _build(kind: Kind, model: type[D], found: Found, joined: frozenset[str]) -> Loaded[D]:
    chain = Chain(kind, joined)
    values = chain.read(found, 0)
    document = check(kind, model, values, str(found.path))
    return Loaded(found.name, document, found.origin, tuple(chain.files), _digest(chain.contents))


def _digest(contents: list[bytes]) -> str:
    whole = hashlib.sha256()
    for content in contents:
        whole.update(len(content).to_bytes(8, "big") + content)
    return whole.hexdigest()
