"""Commands with a key: started once, whatever their end, over concurrent calls and over openings of the journal."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from liveness import Lifeline, unique_duration

from toolrunner import Command, Runner, SqliteJournal, ToolCall, command_tool
from toolrunner.results import Code, Outcome, Retry
from toolrunner.tools import RetryPolicy

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

BOUND = 30.0
QUICK = RetryPolicy(attempts=5, wait_initial=0.0, wait_max=0.0)


def command(script: str, **options: Any) -> Any:
    @command_tool(name="send", parallel_safe=True, **options)
    def send() -> Command:
        return Command(["sh", "-c", script])

    return send


SEND = ToolCall("send", {}, idempotency_key="the mail")


@pytest.mark.case("P60")
async def test_work_that_was_done_before_the_time_limit_is_not_done_again(tmp_path: Path) -> None:
    outbox, path = tmp_path / "outbox", tmp_path / "j.db"
    with Lifeline(tmp_path) as line:
        send = command(f"{line.sh}; echo sent >> {outbox}; sleep {unique_duration()}", timeout=0.5, kill_after=0.1, retry=QUICK)
        with anyio.fail_after(BOUND):
            async with Runner([send], journal=SqliteJournal.open(path)) as runner:
                first = await runner.run(SEND)
                again = await runner.run(SEND)
            async with Runner([send], journal=SqliteJournal.open(path)) as runner:
                later = await runner.run(SEND)
        assert line.is_gone()
    assert (first.outcome, first.code, first.started, first.attempts) == (Outcome.TIMED_OUT, Code.TIMED_OUT, True, 1)
    assert first.retry is Retry.CHECK_FIRST
    assert [one.code for one in (again, later)] == [Code.IN_DOUBT] * 2
    assert {one.about_run_id for one in (again, later)} == {first.run_id}
    assert outbox.read_text() == "sent\n"


@pytest.mark.case("P63")
async def test_a_key_that_is_brought_while_its_call_hangs_is_no_second_start(tmp_path: Path) -> None:
    starts, lock = tmp_path / "starts", tmp_path / "lock"
    with Lifeline(tmp_path) as line:
        script = f"{line.sh}; echo start >> {starts}; flock -n {lock} sleep {unique_duration()} || echo second >> {starts}"
        send = command(script, timeout=0.5, kill_after=0.1)
        with anyio.fail_after(BOUND):
            async with Runner([send], journal=SqliteJournal.open(tmp_path / "j.db")) as runner:
                first, second = await runner.run_batch([SEND, SEND])
                # Ended and not promoted: with the call's result there is nothing left of it.
                assert line.is_gone()
                assert runner.jobs.list() == ()
    assert (first.outcome, first.still_running, first.process is not None) == (Outcome.TIMED_OUT, (), True)
    assert (second.started, second.code, second.about_run_id) == (False, Code.IN_DOUBT, first.run_id)
    assert starts.read_text() == "start\n"
