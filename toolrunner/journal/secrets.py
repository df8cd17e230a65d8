"""Arguments that a tool's schema calls secret (pydantic's `SecretStr`: `format: password`), as keyed digests. No state.

The digest tells whether two calls were given the same secret, to whoever has the journal's key; the key lies in the file and is
never exported.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

_DIGEST = re.compile(r"\[secret [0-9a-f]{32}\]")

_DEPTH = 50
"""Levels of schema that are followed. One that names itself without end says nothing new further down."""


def digest_of(key: bytes, value: object) -> str:
    """What stands in the place of a secret."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return f"[secret {hmac.new(key, text.encode(errors='surrogatepass'), hashlib.sha256).hexdigest()[:32]}]"


_OF_ARGUMENTS = re.compile(r"\b[0-9a-f]{64}\b")


def without_plain_digests(key: bytes, text: str) -> str:
    """A text in which every SHA-256 is a keyed one: of arguments with a secret, a plain one is found by trying secrets."""
    return _OF_ARGUMENTS.sub(lambda found: hmac.new(key, found[0].encode(), hashlib.sha256).hexdigest(), text)


def is_digest(value: object) -> bool:
    """Whether it is what `digest_of` gives, so that it tells nothing any more."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def has_secrets(schema: Schema) -> bool:
    """Whether anything in it is secret; a schema without is not walked for each call."""
    return '"format": "password"' in json.dumps(schema)


def mask(value: Any, schema: Schema, found: Callable[[Any], Any]) -> Any:
    """The arguments with every secret replaced by what `found` returns for it."""
    return _masked(value, schema, schema, found, 0)


def _masked(value: Any, schema: Any, root: Schema, found: Callable[[Any], Any], depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _DEPTH or value is None:
        return value
    if schema.get("format") == "password":
        return found(value)
    for one in _alternatives(schema, root):
        value = _masked(value, one, root, found, depth + 1)
    if isinstance(value, dict):
        named, others = schema.get("properties", {}), schema.get("additionalProperties")
        return {key: _masked(item, named.get(key, others), root, found, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        first, rest = schema.get("prefixItems", ()), schema.get("items")
        return [_masked(item, first[at] if at < len(first) else rest, root, found, depth + 1) for at, item in enumerate(value)]
    return value


def _alternatives(schema: Schema, root: Schema) -> Iterator[Any]:
    """What else is said of the same value. Each alternative is applied: a value that may be secret is treated as one."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part, {}) if isinstance(target, Mapping) else {}
        yield target
    for word in ("anyOf", "oneOf", "allOf"):
        yield from schema.get(word, ())
