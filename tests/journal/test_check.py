"""`check`: a journal that a runner wrote is whole, and each way in which one can be broken is told."""

import sqlite3
from pathlib import Path
from typing import Any

import anyio
import pytest
from journal.stage import decided, look, recorded, write
from results.legal import result

from toolrunner import AbortController, Runner, SqliteJournal, ToolCall
from toolrunner.errors import JournalMissing
from toolrunner.facts import EffectRecord, EffectStage
from toolrunner.journal import check
from toolrunner.records import (
    CallAnswered,
    CallAsked,
    CallDispatched,
    CallEnded,
    CallSettled,
    EffectApplied,
    EffectPlanned,
    Record,
)
from toolrunner.testing import ScriptedApprover

DISPATCHED = CallDispatched(run_id="run-1", name="write", arguments={})
SETTLED = CallSettled(run_id="run-1", result=result(run_id="run-1"))
ENDED = CallEnded(run_id="run-1", outcome=SETTLED.result.outcome, code=None, ended=SETTLED.result.ended, started=True)
ASKED = CallAsked(run_id="run-1", approval_id="a", text="may I?", digest="")
ANSWERED = CallAnswered(run_id="run-1", approval_id="a", answer="allow")
PLANNED = EffectPlanned(run_id="run-1", effect=EffectRecord("run-1/1", "write", "x", EffectStage.PLANNED))
APPLIED = EffectApplied(run_id="run-1", effect=EffectRecord("run-1/1", "write", "x", EffectStage.APPLIED))
WHOLE = (recorded(1), ASKED, ANSWERED, decided(1), DISPATCHED, PLANNED, APPLIED, ENDED, SETTLED)


def written(path: Path, *records: Record) -> Path:
    journal = SqliteJournal.open(path / "journal.db")
    journal.append(*records)
    journal.close()
    return path / "journal.db"


@pytest.mark.anyio
async def test_what_a_runner_wrote_is_whole(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    with anyio.fail_after(30):
        async with Runner([write, look], journal=journal, approver=ScriptedApprover()) as runner:
            controller = AbortController()
            await runner.run("write", {"number": 1})
            await runner.run("nobody", {})
            await runner.run("write", {"number": "x"})
            await runner.run_batch([ToolCall("look", {"number": number}) for number in range(5)])
            controller.abort()
            await runner.run("write", {"number": 1}, signal=controller.signal)
    report = check(tmp_path)
    assert (report.problems, report.unsettled, report.calls, report.openings) == ((), (), 9, 1)
    assert report.is_whole


def test_a_call_that_has_not_settled_is_told_and_is_no_problem(tmp_path: Path) -> None:
    report = check(written(tmp_path, recorded(1), DISPATCHED, recorded(2)))
    assert (report.problems, report.unsettled) == ((), ("run-1", "run-2"))


@pytest.mark.parametrize(
    "records, problem",
    [
        ((DISPATCHED,), "record 1, call run-1: call/dispatched of a call that was never recorded"),
        ((*WHOLE, recorded(1)), "recorded a second time"),
        ((*WHOLE, SETTLED), "record 10, call run-1: it is settled a second time"),
        ((*WHOLE, DISPATCHED), "call/dispatched after it was settled"),
        ((recorded(1), SETTLED), "says that it started, and it was never dispatched"),
        ((recorded(1), ENDED), "ended more often than it was dispatched"),
        ((recorded(1), ANSWERED), "an answer without its question"),
        ((recorded(1), ASKED, ANSWERED, ANSWERED), "an answer without its question"),
        ((recorded(1), DISPATCHED, APPLIED), "effect/applied of an effect that was never planned"),
    ],
)
def test_records_in_an_order_that_cannot_be_are_told(tmp_path: Path, records: tuple[Any, ...], problem: str) -> None:
    problems = check(written(tmp_path, *records)).problems
    assert len(problems) == 1
    assert problem in problems[0]


@pytest.mark.parametrize(
    "statement, problem",
    [
        ("DELETE FROM records WHERE seq = 3", "records 3 to 3 are missing"),
        ("DELETE FROM records WHERE seq = 1", "records 1 to 1 are missing"),
        ("UPDATE records SET body = '{}' WHERE seq = 2", "record 2, call run-1: "),
        ("UPDATE openings SET first_seq = 99", "opening 1 says that its first record is 99"),
    ],
)
def test_what_was_changed_by_others_is_told(tmp_path: Path, statement: str, problem: str) -> None:
    path = written(tmp_path, *WHOLE)
    assert check(path).problems == ()
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    assert any(problem in one for one in check(path).problems)


def test_a_damaged_page_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, *(recorded(number) for number in range(500)))
    content = bytearray(path.read_bytes())
    for at in range(4096 * 4, len(content), 4096):
        content[at + 3 : at + 5] = b"\xff\xff"  # the number of cells of a page
    path.write_bytes(content)
    try:
        problems = check(path).problems
    except Exception as error:
        problems = (str(error),)
    assert any("malformed" in one or "SQLite: " in one for one in problems)


def test_nothing_to_check_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JournalMissing):
        check(tmp_path / "journal.db")
