"""Records as JSON text and back. No state.

What is in a file is never rewritten: a record of an older version is brought up to date here, each time it is read, by the
upcasters of its type. One that this version does not know (a type or version of later days, or content that is no legal record)
is handed out as it lies there, so that a journal can always be shown, exported and checked.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, final, get_args

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, SchemaSerializer

from toolrunner.records import Record

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
"""From one version of a type's content to the next; sets nothing but what changed, `v` is raised by the caller."""

KINDS: dict[str, type[Any]] = {kind.__dataclass_fields__["type"].default: kind for kind in get_args(get_args(Record)[0])}

VERSIONS: dict[str, int] = {name: kind.__dataclass_fields__["v"].default for name, kind in KINDS.items()}
"""The version of each type that this version of toolrunner writes."""

UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}
"""(type, version) -> the way to the next version. New fields with defaults need none: that is how most changes are made."""


@final
@dataclass(frozen=True, slots=True)
class RawRecord:
    """A record as it lies in the file, because this version cannot make one of its own of it; `problem` says why."""

    seq: int
    run_id: str
    type: str
    v: int
    content: JsonValue
    problem: str
    is_later: bool = False
    """Its type or version is of later days; otherwise it is no legal record."""


_WITHOUT_SEQ = {"seq"}


@cache
def _serializer(kind: str) -> SchemaSerializer:
    """The adapter's own, without its checks of options; called for each record, while somebody waits for the disk."""
    serializer = _adapter(kind).serializer
    assert isinstance(serializer, SchemaSerializer)  # nothing is deferred once the adapter is built
    return serializer


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    """Built when the first record of its kind comes: all of them cost every start of a program 60 ms."""
    return TypeAdapter(KINDS[kind])


def to_json(record: Record) -> str:
    """The record as JSON text, without `seq`, which is the row's key."""
    try:
        return _serializer(record.type).to_json(record, exclude=_WITHOUT_SEQ).decode()
    except (PydanticSerializationError, UnicodeError, ValueError):
        # A lone surrogate (a file name that is no UTF-8), or nesting that pydantic gives up on: the standard library writes both.
        return json.dumps(_adapter(record.type).dump_python(record, exclude=_WITHOUT_SEQ, mode="json"), separators=(",", ":"))


def from_json(seq: int, kind: str, version: int, run_id: str, text: str) -> Record | RawRecord:
    """Read one record. Raises nothing: what cannot be read as a record is a `RawRecord`."""
    if version == VERSIONS.get(kind):
        try:
            record: Record = _adapter(kind).validate_json(text)
        except ValidationError:
            pass  # the slow way tells a limit of the quick reader from what is no record
        else:
            # Filled in and not copied: nobody has seen this object yet.
            object.__setattr__(record, "seq", seq)
            return record
    return _slowly(seq, kind, version, run_id, text)


def _slowly(seq: int, kind: str, version: int, run_id: str, text: str) -> Record | RawRecord:
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        return RawRecord(seq, run_id, kind, version, text, f"it is no JSON: {error}")
    if kind not in KINDS:
        return RawRecord(seq, run_id, kind, version, content, f"this version does not know the type {kind!r}", is_later=True)
    if version > VERSIONS[kind]:
        problem = f"version {version} of {kind!r} is of later days; this version knows {VERSIONS[kind]}"
        return RawRecord(seq, run_id, kind, version, content, problem, is_later=True)
    try:
        current = upcast(kind, version, content)
        record: Record = _adapter(kind).validate_python(current)
        return replace(record, seq=seq)
    except (ValueError, TypeError, KeyError, RecursionError) as error:  # a ValidationError is a ValueError
        return RawRecord(seq, run_id, kind, version, content, str(error))


def upcast(kind: str, version: int, content: dict[str, Any], upcasters: Mapping[tuple[str, int], Upcaster] | None = None) -> Any:
    """Bring a record's content to the version of today. Raises ValueError where no way leads there."""
    ways = UPCASTERS if upcasters is None else upcasters
    target = VERSIONS[kind]
    while version != target:
        way = ways.get((kind, version))
        if way is None:
            raise ValueError(f"version {version} of {kind!r} is not known; this version knows {target}")
        version += 1
        content = {**way(content), "v": version}
    return content
