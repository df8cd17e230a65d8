"""Which journal is meant, which call in it, and its records on one clock. Reads the state folder and journals; no state.

A journal is named by its file (`--journal`), by its session (`--session`), or not at all: then the newest session is meant, the
one that was written last.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import final

from toolrunner.cli.printable import printable
from toolrunner.cli.views.story import Noted
from toolrunner.errors import ToolrunnerError
from toolrunner.journal import Entry, JournalReader, Opening, Place, named_place, session_place, sessions, sessions_folder

LISTED = 20
"""Calls that are named when an id is ambiguous."""


@final
class NotFound(ToolrunnerError):
    """What was asked for is not there, or not one."""


def place_of(session: str | None, journal: Path | None) -> Place:
    """The journal that is meant.

    Raises:
        NotFound: both are named, or there is no session yet. ConfigError: the name cannot be a session's.
    """
    if session is not None and journal is not None:
        raise NotFound("--session and --journal both name a journal; give one of them")
    if journal is not None:
        return named_place(journal)
    return session_place(session) if session is not None else newest()


def newest() -> Place:
    """The session that was written last. Raises `NotFound`."""
    found = sessions()
    if not found:
        raise NotFound(f"there is no session yet in {sessions_folder()}; `toolrunner run` and `batch` make one")
    return found[0].place


def find_run(reader: JournalReader, wanted: str) -> str:
    """The run id of the call that `wanted` begins the run id or call id of.

    Raises:
        NotFound: there is none, or more than one; then they are listed.
    """
    found = reader.find(wanted, LISTED + 1) if wanted else ()
    if len(found) == 1:
        return found[0][0]
    if not found:
        raise NotFound(f"no call in {reader.path} has an id that begins with {wanted!r}")
    raise NotFound(ambiguous(wanted, found))


def ambiguous(wanted: str, found: Iterable[tuple[str, str | None]]) -> str:
    """What is said when an id fits several calls."""
    listed = [run_id if call_id is None else f"{run_id} (call {printable(call_id, 60)})" for run_id, call_id in found]
    more = f", and {len(listed) - LISTED} more or above" if len(listed) > LISTED else ""
    return f"{wanted!r} may be any of {', '.join(listed[:LISTED])}{more}; say more of its run id"


def noted(entries: Iterable[Entry], openings: Iterable[Opening]) -> Iterator[Noted]:
    """Records on one clock. Between two boots only the wall clock tells how long it was, and that is never less than nothing."""
    owners = list(openings)
    firsts = [one.first_seq for one in owners]
    now = 0.0
    before: tuple[Entry, str] | None = None
    for entry in entries:
        opening = bisect_right(firsts, entry.seq) - 1
        boot = owners[opening].owner.boot_id if opening >= 0 else ""
        if before is not None:
            now += max(0.0, _between(before[0], entry, same_boot=boot == before[1]))
        before = entry, boot
        yield Noted(entry.record, now, opening)


def _between(before: Entry, entry: Entry, *, same_boot: bool) -> float:
    if same_boot:
        return entry.boottime - before.boottime
    first, second = getattr(before.record, "at", None), getattr(entry.record, "at", None)
    return float((second - first).total_seconds()) if first is not None and second is not None else 0.0
