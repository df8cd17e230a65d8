"""A record as a line of JSON, for `--events`, `log` and `show`. No state."""

import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from toolrunner.journal import RawRecord
from toolrunner.records import Record

_TOLD_LAST = {"result"}
"""Not in the lines of `call/ended` and `call/settled`: the result is the last line, and may be megabytes."""


@cache
def _adapter() -> TypeAdapter[Record]:
    return TypeAdapter(Record)


def record_line(record: Record | RawRecord, seq: int, *, whole: bool = False) -> bytes:
    """One line, with its line end. `seq` is the record's number among those that are kept; a transient one repeats the last.

    `whole`: with the result in it.
    """
    return (
        json.dumps(record_dict(record, seq, whole=whole), ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        + b"\n"
    )


def record_dict(record: Record | RawRecord, seq: int, *, whole: bool = True) -> dict[str, Any]:
    """The same as an object. One that this version cannot read is told as it lies in the journal, with the reason."""
    if isinstance(record, RawRecord):
        return {
            "type": record.type,
            "run_id": record.run_id,
            "v": record.v,
            "content": record.content,
            "problem": record.problem,
            "seq": seq,
        }
    content = _adapter().dump_python(record, mode="json", exclude=None if whole else _TOLD_LAST)
    return {"type": content.pop("type"), **content, "seq": seq}
