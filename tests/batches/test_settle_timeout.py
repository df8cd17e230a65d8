"""What becomes of a stopped body that does not end: published when the host asked for that, waited for otherwise."""

import threading

import anyio
import pytest
from batches.stage import Stage, assert_claims_no_more_than_known, opened, text, until
from stillness import quiet

from toolrunner import AbortController, ToolCall, tool

pytestmark = pytest.mark.anyio


async def test_settle_timeout_publishes_a_body_that_runs_on_and_keeps_what_it_holds() -> None:
    controller, working, go = AbortController(), threading.Event(), threading.Event()

    @tool(resources=lambda _: ["db"])
    def stuck() -> str:
        working.set()
        go.wait()
        return "at last"

    @tool(resources=lambda _: ["db"])
    async def after() -> str:
        return "mine"

    async with opened(stuck, after, settle_timeout=0.05) as runner:
        try:
            batch = runner.start_batch([ToolCall("stuck")], signal=controller.signal)
            await until(working.is_set)
            controller.abort("stop")
            (result,) = results = await batch
            waiting = runner.start_batch([ToolCall("after")])
            await quiet()
            # The lock is the running body's, published or not.
            assert runner._services is not None
            assert runner._services.leases.held == 1
        finally:
            go.set()
        assert (await waiting)[0].value == "mine"
        assert runner.result(result.run_id) is result
    assert (result.outcome, result.code, result.started, result.ended) == ("aborted", "ABORTED", True, None)
    assert result.still_running is not None
    assert [(one.what, one.kind) for one in result.still_running] == [("stuck", "body")]
    assert results.still_running == result.still_running
    assert (result.effects.state, result.effects.evidence) == ("unknown", None)
    assert "The call was told to stop and is still running." in text(result)
    assert_claims_no_more_than_known(result)


@pytest.mark.virtual_time
async def test_without_settle_timeout_a_stuck_body_is_waited_for() -> None:
    stage, controller = Stage(), AbortController()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([ToolCall("stubborn", {"name": "a"})], signal=controller.signal)
        await stage.started("a")
        controller.abort()
        with anyio.move_on_after(0.2) as scope:
            await batch._run.done.wait()
        assert scope.cancelled_caught
        stage.end("a")
        assert (await batch)[0].still_running == ()
