"""A journal as lines of JSON, to be given to somebody. No state.

Openings come where they happened, each before its first record. Unless `raw`, every foreign text and number is blanked: what
is left says what happened to which call and effect, and not with what.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from toolrunner.journal.clocks import Opening
from toolrunner.journal.reader import JournalReader
from toolrunner.journal.schema import SCHEMA_VERSION
from toolrunner.journal.texts import change_foreign


def export(path: str | os.PathLike[str], *, raw: bool = False) -> Iterator[str]:
    """One line per opening and per record, without line ends. Raises `JournalError`."""
    with JournalReader(path) as reader:
        openings = list(reader.openings())
        for seq, boottime, body in reader.bodies():
            while openings and openings[0].first_seq <= seq:
                yield _opening(openings.pop(0), reader.session)
            content: dict[str, Any] = json.loads(body)
            yield _line({"seq": seq, "boottime": boottime, **(content if raw else change_foreign(content, _blank))})
        for opening in openings:
            yield _opening(opening, reader.session)


def _opening(opening: Opening, session: str | None) -> str:
    facts = asdict(opening)
    facts["opened_at"] = opening.opened_at.isoformat()
    return _line({"type": "journal/opened", "schema_version": SCHEMA_VERSION, "session": session, **facts})


def _line(content: dict[str, Any]) -> str:
    # ASCII, so that a lone surrogate in it is an escape and every reader can have the line.
    return json.dumps(content, separators=(",", ":"))


def _blank(_: str, text: Any) -> str:
    return f"[{len(text)} characters]" if isinstance(text, str) else "[a number]"
