"""The deadline of a batch."""

import pytest
from batches.stage import Stage, alone, opened, step, text

pytestmark = pytest.mark.anyio


@pytest.mark.virtual_time
async def test_the_deadline_of_a_batch_counts_from_its_submission_and_stops_what_runs_and_what_waits() -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        a, b = results = await runner.run_batch([step("a"), alone("b")], deadline=0.05)
    assert (a.outcome, a.code, a.started, a.ended) == ("timed_out", "TIMED_OUT", True, "stopped")
    assert (b.outcome, b.code, b.started, b.ended) == ("timed_out", "ABORTED_BEFORE_DISPATCH", False, None)
    for result in results:
        assert result.stop is not None
        assert (result.stop.source, result.stop.reason) == ("timeout", "the deadline of 0.05 s is over")
    assert "may have taken effect" in text(a)
    assert "The deadline passed before the call started." in text(b)
    assert b.effects.evidence == "not_started"
    assert results.stopped is not None
    assert results.stopped.source == "timeout"


async def test_a_deadline_that_is_kept_leaves_no_trace() -> None:
    stage = Stage()
    stage.end("a")
    async with opened(stage.tools) as runner:
        (a,) = results = await runner.run_batch([step("a")], deadline=60)
    assert (a.outcome, a.stop, results.stopped) == ("succeeded", None, None)
