"""Values against a model; a complaint about an unknown key names the nearest one that is known there. No state."""

import json
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from toolrunner.config.documents import D, Kind
from toolrunner.config.search import near


def check(kind: Kind, model: type[D], values: dict[str, Any], where: str) -> D:
    try:
        # As JSON, because pydantic's strict mode takes a list for a tuple and a word for an enum only from there.
        return model.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        problems = "; ".join(_problems(model, error))
        raise kind.error(f"{kind.noun} {where}: {problems}") from error


def _problems(model: type[BaseModel], error: ValidationError) -> Iterator[str]:
    for found in error.errors(include_url=False, include_input=False):
        where = ".".join(str(part) for part in found["loc"])
        if found["type"] == "extra_forbidden":
            known = _known(model, found["loc"])
            yield f"unknown key {where!r}{near(str(found['loc'][-1]), known) or '; known here: ' + ', '.join(known)}"
        else:
            yield f"{where}: {found['msg']}" if where else found["msg"]


def _known(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The keys that may stand where an unknown one was found. Indexes and the tags of unions are passed over."""
    tables = {model}
    for part in loc[:-1]:
        inner = {deep for table in tables for key, note in _fields(table) if key == part for deep in _tables(note)}
        tables = inner or tables
    return sorted({key for table in tables for key, _ in _fields(table)})


def _fields(table: type[BaseModel]) -> list[tuple[str, Any]]:
    return [(field.alias or name, field.annotation) for name, field in table.model_fields.items()]


def _tables(note: Any) -> set[type[BaseModel]]:
    if isinstance(note, type) and issubclass(note, BaseModel):
        return {note}
    return {table for part in get_args(note) for table in _tables(part)}
