"""SIGKILL at any moment: every acknowledged record is there, the numbers are dense, and the next owner goes on behind them."""

import random
from pathlib import Path

import pytest
from journal.stage import KillableWriter, kept, recorded

from toolrunner import SqliteJournal
from toolrunner.journal import JournalReader, check

KILLS = 12


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_writer_killed_at_random_loses_nothing_that_it_had_acknowledged(tmp_path: Path, backend: str) -> None:
    chance = random.Random(backend)  # noqa: S311
    path = tmp_path / "journal.db"
    before = 0
    for _ in range(KILLS):
        with KillableWriter(path, backend) as owner:
            said = owner.kill_after(chance.randrange(1, 40), chance.random() * 0.01)
        found = [record.seq for record in kept(path)]
        assert found == list(range(1, len(found) + 1))
        assert len(found) - before >= said
        before = len(found)
    with JournalReader(path) as reader:
        assert [one.first_seq for one in reader.openings()] == sorted(one.first_seq for one in reader.openings())
        assert len(reader.openings()) == KILLS
    assert [line for line in check(path).problems if "a second time" not in line] == []
    journal = SqliteJournal.open(path)
    journal.append(recorded(0))
    journal.close()
    assert kept(path)[-1].seq == before + 1


def test_a_writer_killed_while_it_opens_leaves_a_journal_or_an_empty_file(tmp_path: Path) -> None:
    chance = random.Random(7)  # noqa: S311
    for number in range(8):
        path = tmp_path / f"{number}.db"
        with KillableWriter(path, "asyncio") as owner:
            owner.kill_after(0, 0.25 + chance.random() * 0.5)
        journal = SqliteJournal.open(path)
        journal.append(recorded(0))
        journal.close()
        found = [record.seq for record in kept(path)]
        assert found == list(range(1, len(found) + 1))
