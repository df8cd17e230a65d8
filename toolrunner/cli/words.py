"""Words of a command line as JSON. No state.

Argument lists, paths and names are bytes (execve(2)), JSON strings are Unicode: a word that is no UTF-8 is said as
`{"base64": ...}`, so that the record holds exactly what was run.
"""

import base64
import os
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Bytes:
    """A word that is no UTF-8."""

    base64: str


Word = str | Bytes


def to_json(word: str) -> str | dict[str, str]:
    """A word as Python hands it to us (surrogateescape)."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return {"base64": base64.b64encode(os.fsencode(word)).decode("ascii")}
    return word


def from_json(word: Word) -> str:
    """The word again."""
    return word if isinstance(word, str) else os.fsdecode(base64.b64decode(word.base64, validate=True))
