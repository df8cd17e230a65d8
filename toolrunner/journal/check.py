"""Whether a journal is whole: the database, the numbers, the order of each call's records. Reads only. No state."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

from toolrunner.journal.codec import RawRecord
from toolrunner.journal.order import Order
from toolrunner.journal.reader import JournalReader

PROBLEMS = 100
"""Problems that are listed; a file that is broken throughout says the same thing again and again."""


@final
@dataclass(frozen=True, slots=True)
class CheckReport:
    """What was found. `problems` empty = whole; `unknown` records of a later version are no problem, `unsettled` calls neither.

    A call is unsettled while it runs, and after its host died, until the owner's next opening recovers it.
    """

    path: Path
    records: int
    calls: int
    openings: int
    problems: tuple[str, ...]
    unknown: int
    unsettled: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing contradicts anything."""
        return not self.problems


def check(path: str | os.PathLike[str]) -> CheckReport:
    """Look through a whole journal. Raises `JournalError` where it cannot even be opened."""
    with JournalReader(path) as reader:
        problems = [f"SQLite: {line}" for line in reader.integrity()]
        openings = reader.openings()
        last, unknown, order, calls = 0, 0, Order(), 0
        for entry in reader:
            if entry.seq != last + 1:
                problems.append(f"records {last + 1} to {entry.seq - 1} are missing")
            last = entry.seq
            calls += entry.record.type == "call/recorded"
            if isinstance(entry.record, RawRecord):
                unknown += entry.record.is_later
                wrong = None if entry.record.is_later else entry.record.problem
            else:
                wrong = order.look(entry.record)
            if wrong is not None:
                problems.append(f"record {entry.seq}, call {entry.record.run_id}: {wrong}")
        problems += [
            f"opening {one.number} says that its first record is {one.first_seq}, and the last one there is is {last}"
            for one in openings
            if one.first_seq > last + 1
        ]
    return CheckReport(reader.path, last, calls, len(openings), tuple(problems[:PROBLEMS]), unknown, order.unsettled)
