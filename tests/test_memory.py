"""The journal that lives in memory: dense numbers, a bound, no transient records."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.memory import MemoryJournal
from toolrunner.records import CallStopDelivered, Output, Progress, Record


def delivered(n: int) -> Record:
    return CallStopDelivered(run_id=f"r{n}")


def test_records_are_numbered_from_one_in_the_order_they_came() -> None:
    journal = MemoryJournal()
    assert list(journal) == []
    journal.append(delivered(0), delivered(1))
    journal.append()
    journal.append(delivered(2))
    assert [(record.seq, record.run_id) for record in journal] == [(1, "r0"), (2, "r1"), (3, "r2")]
    assert list(journal) == list(journal)


def test_transient_records_are_not_kept_and_take_no_number() -> None:
    journal = MemoryJournal()
    journal.append(Progress(run_id="a"), delivered(0), Output(run_id="a", stream="stdout", text="x"), delivered(1))
    assert [(record.seq, record.type) for record in journal] == [(1, "call/stop_delivered"), (2, "call/stop_delivered")]


@given(commits=st.lists(st.lists(st.booleans(), max_size=5), max_size=20), kept=st.integers(0, 12))
def test_the_numbers_stay_dense_and_the_last_records_are_kept(commits: list[list[bool]], kept: int) -> None:
    journal = MemoryJournal(kept)
    count = 0
    for commit in commits:
        records: list[Any] = []
        for lasting in commit:
            records.append(delivered(count + 1) if lasting else Progress(run_id="p"))
            count += lasting
        journal.append(*records)
    numbers = [record.seq for record in journal]
    assert numbers == list(range(max(0, count - kept) + 1, count + 1))
    assert [record.run_id for record in journal] == [f"r{number}" for number in numbers]


def test_reading_while_records_come_in_shows_what_was_there() -> None:
    journal = MemoryJournal(kept=2)
    journal.append(delivered(1), delivered(2))
    reading = iter(journal)
    journal.append(delivered(3))
    assert [record.seq for record in reading] == [1, 2]
    assert [record.seq for record in journal] == [2, 3]


@pytest.mark.anyio
async def test_memory_has_nothing_pending_and_does_not_fail() -> None:
    journal = MemoryJournal()
    assert journal.append(delivered(1)) is None  # type: ignore[func-returns-value]
    assert journal.error is None
    await journal.aclose()
    assert len(list(journal)) == 1
