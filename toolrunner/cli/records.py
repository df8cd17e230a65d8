"""A record as a line of JSON, for `--events`. No state."""

import json
from functools import cache

from pydantic import TypeAdapter

from toolrunner.records import Record

_TOLD_LAST = {"result"}
"""Not in the lines of `call/ended` and `call/settled`: the result is the last line, and may be megabytes."""


@cache
def _adapter() -> TypeAdapter[Record]:
    return TypeAdapter(Record)


def record_line(record: Record, seq: int) -> bytes:
    """One line, with its line end. `seq` is the record's number among those that are kept; a transient one repeats the last."""
    content = _adapter().dump_python(record, mode="json", exclude=_TOLD_LAST)
    ordered = {"type": content.pop("type"), **content, "seq": seq}
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"
