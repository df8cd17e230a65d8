"""Opens foreign items: dicts or SDK objects in, checked plain fields out. Pure.

Providers' SDK objects are pydantic models; none of the SDKs is imported, only their `model_dump` (or `to_dict`) is used.
"""

import base64
import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, final, runtime_checkable

from toolrunner.errors import ConfigError
from toolrunner.wire.values import Item, MalformedItem, Provider, WireCall

SHOWN = 60
"""Characters of a foreign value that an error message quotes: enough to recognise it, never a whole base64 image."""


@runtime_checkable
class _Dumps(Protocol):
    def model_dump(self, *, mode: str, by_alias: bool, warnings: bool) -> dict[str, Any]: ...


@runtime_checkable
class _ToDict(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


def described(value: object) -> str:
    """Name a foreign value for an error message, bounded."""
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= SHOWN else text[:SHOWN] + '…'}"


def opened(item: object) -> Mapping[str, Any] | None:
    """Return a mapping view of a dict or an SDK object, None for anything else."""
    if isinstance(item, Mapping):
        return item
    if isinstance(item, type):
        return None
    if isinstance(item, _Dumps):
        # Not exclude_none: that also drops what the model set to null inside its arguments. `warnings` is off because SDKs
        # build their objects unvalidated, so a field that is newer than the SDK would warn at every dump.
        return item.model_dump(mode="json", by_alias=True, warnings=False)
    if isinstance(item, _ToDict):
        return item.to_dict()
    return None


def sequence_at(item: object, *path: str | int) -> Sequence[object] | None:
    """Follow `path` through mappings and lists to a list; None when the path leads nowhere or to something else."""
    here: object = item
    for step in path:
        if isinstance(step, str):
            here = (opened(here) or {}).get(step)
        else:
            here = here[step] if isinstance(here, list | tuple) and len(here) > step else None
    return here if isinstance(here, list | tuple) else None


def word(mapping: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these fields that is a string: a type, a status, an id. Anything else compares with nothing."""
    value = next((mapping[name] for name in names if isinstance(mapping.get(name), str)), None)
    # A dump in Python mode leaves enum members, whose hash is not that of the word they stand for.
    return value.value if isinstance(value, Enum) else value


def plain(value: object) -> Any:  # JSON
    """Copy a JSON value; bytes, which SDK objects hold for signatures, become base64 text as on the wire."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return copy.deepcopy(value)


def _refused(constant: str) -> Any:  # never returns
    raise ValueError(constant)


def loaded(text: str) -> object:
    """Parse JSON; None when it is none. NaN, which Python alone would let pass, is none: no provider takes it back."""
    try:
        return json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):  # the nesting is the model's, and may be any depth
        return None


def with_meta(item: Item, provider_meta: Mapping[str, Any]) -> Item:
    """Add what the provider sent with the call; it never overrides what is said here, were it even another provider's."""
    return item | {key: plain(value) for key, value in provider_meta.items() if key not in item}


def parsed_object(arguments: Mapping[str, Any] | str) -> Item:
    """Return arguments as the object some APIs insist on; text that is no object goes under INVALID_JSON, unchanged."""
    if not isinstance(arguments, str):
        return plain(arguments)  # type: ignore[no-any-return]
    value = loaded(arguments or "{}")
    return value if isinstance(value, dict) else {"INVALID_JSON": arguments}


def json_arguments(arguments: Mapping[str, Any] | str) -> str:
    """Return arguments as JSON text; the model's own text is kept byte for byte, so that replays extend the same prefix."""
    return arguments if isinstance(arguments, str) else json.dumps(plain(arguments), ensure_ascii=False, separators=(",", ":"))


def custom_input(call: WireCall) -> str:
    """Return the free text of a custom call."""
    if isinstance(call.arguments, str):
        return call.arguments
    text = call.arguments.get("input")
    if not isinstance(text, str):
        raise ConfigError(f"arguments of custom call {call.name!r}", call.arguments, "{'input': text}")
    return text


@final
@dataclass(frozen=True, slots=True)
class Reader:
    """Typed access to one foreign mapping; every complaint says provider, place and what was there instead."""

    provider: Provider
    where: str
    data: Mapping[str, Any]

    def wrong(self, problem: str) -> MalformedItem:
        return MalformedItem(self.provider, self.where, problem)

    def _wrong_type(self, key: str, expected: str) -> MalformedItem:
        found = f"is {described(self.data[key])}" if key in self.data else "is missing"
        return self.wrong(f"{key!r} {found}; expected {expected}")

    def text(self, key: str) -> str:
        """Return a required string. An empty one passes: an empty name is the model's mistake, and gets a result that says so."""
        value = self.data.get(key)
        if not isinstance(value, str):
            raise self._wrong_type(key, "a string")
        return value

    def identifier(self, key: str) -> str:
        """Return a required id: without one the result could never be paired."""
        value = self.text(key)
        if not value:
            raise self.wrong(f"{key!r} is empty; expected the id that the result must name")
        return value

    def optional_identifier(self, key: str) -> str | None:
        return None if self.data.get(key) in (None, "") else self.text(key)

    def child(self, key: str) -> "Reader":
        value = opened(self.data.get(key))
        if value is None:
            raise self._wrong_type(key, "an object")
        return Reader(self.provider, f"{self.where}.{key}", value)

    def arguments(self, key: str) -> Item | str:
        """Return arguments: an object, or text as it is. Absent, null and empty all mean that the model passed none."""
        value = self.data.get(key)
        if value is None or value == "":
            return {}
        if isinstance(value, str):
            return value
        if isinstance(value, Mapping):
            return plain(value)  # type: ignore[no-any-return]
        raise self._wrong_type(key, "an object or JSON text")

    def rest(self, *known: str) -> Item:
        """Return what is left besides `known`, nulls aside: it is kept for the provider, whatever it means."""
        return {key: plain(value) for key, value in self.data.items() if key not in known and value is not None}


def entries(provider: Provider, where: str, items: Iterable[object]) -> list[Mapping[str, Any]]:
    """Open every item of a response."""
    mappings = []
    for index, item in enumerate(items):
        mapping = opened(item)
        if mapping is None:
            raise MalformedItem(provider, f"{where}[{index}]", f"is {described(item)}; expected an object")
        mappings.append(mapping)
    return mappings


def no_response(provider: Provider, response: object, expected: str) -> MalformedItem:
    """Say that a whole response is not one."""
    return MalformedItem(provider, "response", f"is {described(response)}; expected {expected}")
