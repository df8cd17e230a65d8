"""Where no process can be listed (no /proc, or an empty one): only the call's group can be reached, and nothing breaks off."""

import psutil
import pytest
from liveness import survivors, unique_duration
from process.shapes import GRACE, part, run, run_until

from toolrunner.process import EndCause, Supervisor

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> object:
        raise IndexError("list index out of range")  # what psutil 7 says of an empty /proc

    monkeypatch.setattr(psutil, "process_iter", nothing)


async def test_a_command_that_ends_by_itself_has_its_result(best_effort: Supervisor) -> None:
    outcome = await run(best_effort, "echo here; exit 3")
    assert (outcome.end.cause, outcome.end.facts.exit_code, outcome.out) == (EndCause.EXITED, 3, "here\n")
    assert outcome.end.still_running is None


async def test_a_stop_ends_the_whole_group_also_who_ignores_it(best_effort: Supervisor) -> None:
    duration = unique_duration()
    script = f"sh -c 'trap \"\" TERM; echo part; sleep {duration}' & wait"
    outcome = await run_until(best_effort, script, part, grace=GRACE)
    assert (outcome.end.cause, outcome.end.still_running) == (EndCause.STOPPED, None)
    assert await survivors(duration) == []


async def test_what_a_command_leaves_in_its_group_is_ended(best_effort: Supervisor) -> None:
    duration = unique_duration()
    outcome = await run(best_effort, f"sleep {duration} >/dev/null 2>&1 & exit 0")
    assert (outcome.end.cause, outcome.end.still_running) == (EndCause.EXITED, None)
    assert await survivors(duration) == []
