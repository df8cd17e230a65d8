"""Bodies that cannot be stopped, see the stop and go on, or swallow it."""

import threading
import time
from typing import Any

import anyio
import pytest
from batches.stage import assert_claims_no_more_than_known, opened, text, until

from toolrunner import AbortController, ToolCall, ToolContext, tool
from toolrunner.records import Record, StillRunningReport

pytestmark = pytest.mark.anyio


@pytest.mark.case("E13")
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "undeclared"])
async def test_a_sync_body_that_cannot_be_stopped_is_waited_for_reported_and_its_write_not_denied(
    declared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolrunner.pipeline.live.REPORT_AFTER", 0.05)
    controller, working, go, written = AbortController(), threading.Event(), threading.Event(), list[str]()
    reports: list[Record] = []

    @tool
    def slow_write(ctx: ToolContext[Any]) -> str:
        working.set()
        go.wait()
        if declared:
            with ctx.effect("file", "notes.txt"):
                written.append("notes.txt")
        else:
            written.append("notes.txt")
        return "written"

    def observe(record: Record) -> None:
        if record.type == "still_running":
            reports.append(record)

    async with opened(slow_write) as runner:
        batch = runner.start_batch([ToolCall("slow_write")], signal=controller.signal, on_event=observe)
        try:
            await until(working.is_set)
            controller.abort("stop")
            await until(lambda: len(reports) >= 2)
            assert written == []
        finally:
            go.set()
        (result,) = await batch
    assert written == ["notes.txt"]
    assert (result.outcome, result.code, result.started, result.ended) == ("aborted", "ABORTED", True, "returned")
    assert (result.value, result.still_running) == ("written", ())
    assert result.effects.state == "completed"
    assert result.effects.evidence == ("reported" if declared else "assumed")
    said = text(result)
    assert "written" in said
    assert "The call finished before it could be stopped." in said
    assert ("Its change was made: notes.txt." in said) is declared
    assert ("assume that it took effect" in said) is not declared
    assert_claims_no_more_than_known(result)
    first, second = reports[:2]
    assert isinstance(first, StillRunningReport)
    assert isinstance(second, StillRunningReport)
    assert [(one.what, one.kind) for one in first.what] == [("slow_write", "body")]
    assert 0 < first.waited < second.waited


@pytest.mark.case("E30")
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("declared", [False, True], ids=["undeclared", "declared"])
async def test_a_body_that_saw_the_signal_and_returned_half_way_is_never_completed(sync: bool, declared: bool) -> None:
    controller, working = AbortController(), threading.Event()

    @tool
    async def copy(ctx: ToolContext[Any]) -> str:
        if declared:
            async with ctx.effect("file", "first.txt"):
                pass
        working.set()
        with ctx.cleanup():
            await ctx.signal.wait()
        return "as if nothing were"

    @tool(name="copy")
    def copy_in_thread(ctx: ToolContext[Any]) -> str:
        if declared:
            with ctx.effect("file", "first.txt"):
                pass
        working.set()
        while not ctx.signal.aborted:
            time.sleep(0.001)
        return "as if nothing were"

    async with opened(copy_in_thread if sync else copy) as runner:
        batch = runner.start_batch([ToolCall("copy")], signal=controller.signal)
        await until(working.is_set)
        controller.abort()
        (result,) = await batch
    assert (result.outcome, result.ended, result.value) == ("aborted", "returned", "as if nothing were")
    assert result.effects.state == ("partial" if declared else "unknown")
    assert "check before you repeat it" in text(result)
    assert_claims_no_more_than_known(result)


@pytest.mark.case("E30")
async def test_a_body_that_swallows_its_cancel_and_returns_is_never_completed() -> None:
    controller, working = AbortController(), anyio.Event()

    @tool
    async def copy() -> str:
        working.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            pass
        return "swallowed"

    async with opened(copy) as runner:
        batch = runner.start_batch([ToolCall("copy")], signal=controller.signal)
        await working.wait()
        controller.abort()
        (result,) = await batch
    assert (result.outcome, result.ended, result.value) == ("aborted", "returned", "swallowed")
    assert (result.effects.state, result.effects.evidence) == ("unknown", None)
    assert_claims_no_more_than_known(result)
