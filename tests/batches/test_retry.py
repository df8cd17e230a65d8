"""Retries: only what provably did nothing, or may be done twice, is tried again; a stop is never retried."""

from typing import Any

import anyio
import pytest
from batches.stage import Stage, of_type, opened, text
from stillness import quiet

from toolrunner import AbortController, ToolCall, ToolContext, ToolError, tool
from toolrunner.records import Record
from toolrunner.tools import RetryPolicy

pytestmark = pytest.mark.anyio

QUICK = RetryPolicy(3, wait_initial=0.0, wait_max=0.0)
ENDLESS = RetryPolicy(3, wait_initial=600.0, wait_max=600.0)


class Flaky:
    """Fails `failures` times, then works."""

    def __init__(self, failures: int, *, effect: str | None = None, sync: bool = False, **options: Any) -> None:
        self.attempts: list[int] = []

        @tool(name="flaky", **options)
        async def flaky(ctx: ToolContext[Any]) -> str:
            self.attempts.append(ctx.attempt)
            if effect is not None:
                async with ctx.effect("file", effect):
                    pass
            return self._end(ctx, failures)

        @tool(name="flaky", **options)
        def flaky_in_thread(ctx: ToolContext[Any]) -> str:
            self.attempts.append(ctx.attempt)
            return self._end(ctx, failures)

        self.tool = flaky_in_thread if sync else flaky

    def _end(self, ctx: ToolContext[Any], failures: int) -> str:
        ctx.follow_up(ctx.attempt)
        if len(self.attempts) <= failures:
            raise ToolError(f"failure {len(self.attempts)}")
        return "worked"


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("declared", [{"read_only": True}, {"idempotent": True}], ids=["read_only", "idempotent"])
async def test_what_did_nothing_or_may_be_repeated_is_tried_again(declared: dict[str, Any], sync: bool) -> None:
    flaky, records = Flaky(2, retry=QUICK, sync=sync, **declared), list[Record]()
    async with opened(flaky.tool) as runner:
        (result,) = await runner.run_batch([ToolCall("flaky")], on_event=records.append)
        assert runner._services is not None
        assert runner._services.leases.held == 0
    assert flaky.attempts == [1, 2, 3]
    assert (result.outcome, result.value, result.attempts, result.error) == ("succeeded", "worked", 3, None)
    assert [record.attempt for record in records if record.type == "call/dispatched"] == [1, 2, 3]
    assert len(of_type(records, "call/settled")) == 1


async def test_after_the_last_attempt_its_own_error_is_the_result() -> None:
    flaky = Flaky(5, retry=QUICK, read_only=True)
    async with opened(flaky.tool) as runner:
        result = await runner.run("flaky")
    assert flaky.attempts == [1, 2, 3]
    assert (result.outcome, result.code, result.attempts) == ("failed", "TOOL_ERROR", 3)
    assert result.error is not None
    assert result.error.message == "failure 3"


async def test_what_may_have_changed_something_is_not_tried_again() -> None:
    silent, applied = Flaky(1, retry=QUICK), Flaky(1, retry=QUICK, effect="notes.txt")
    async with opened(silent.tool) as runner:
        first = await runner.run("flaky")
    async with opened(applied.tool) as runner:
        second = await runner.run("flaky")
    assert (silent.attempts, applied.attempts) == ([1], [1])
    assert (first.effects.state, first.attempts, first.retry) == ("unknown", 1, "check_first")
    assert second.outcome == "failed"
    assert second.effects.state in ("partial", "completed")
    assert "notes.txt" in text(second)


async def test_a_read_only_tool_that_recorded_a_change_is_not_tried_again() -> None:
    flaky = Flaky(1, retry=QUICK, effect="notes.txt", read_only=True)
    async with opened(flaky.tool) as runner:
        result = await runner.run("flaky")
    assert flaky.attempts == [1]
    assert result.effects.state != "none"


async def test_without_a_policy_nothing_is_tried_again() -> None:
    flaky = Flaky(1, read_only=True)
    async with opened(flaky.tool) as runner:
        assert (await runner.run("flaky")).outcome == "failed"
    assert flaky.attempts == [1]


async def test_an_abort_in_the_wait_between_two_attempts_ends_it_and_keeps_the_failure() -> None:
    flaky, controller = Flaky(5, retry=ENDLESS, read_only=True), AbortController()
    async with opened(flaky.tool) as runner:
        batch = runner.start_batch([ToolCall("flaky")], signal=controller.signal)
        await quiet()
        assert flaky.attempts == [1]
        controller.abort("enough")
        (result,) = await batch
        assert runner._services is not None
        assert runner._services.leases.held == 0
    assert flaky.attempts == [1]
    assert (result.outcome, result.code, result.started, result.attempts) == ("failed", "TOOL_ERROR", True, 1)
    assert result.stop is not None
    assert result.stop.reason == "enough"


@pytest.mark.parametrize("mode", ["immediate", "drain"])
async def test_a_body_that_fails_while_a_stop_is_asked_for_is_not_tried_again(mode: str) -> None:
    controller, tries = AbortController(), list[int]()

    @tool(read_only=True, retry=QUICK)
    async def work(ctx: ToolContext[Any]) -> None:
        tries.append(ctx.attempt)
        controller.abort(mode=mode)
        raise ToolError("mine")

    async with opened(work) as runner:
        (result,) = await runner.run_batch([ToolCall("work")], signal=controller.signal)
    assert tries == [1]
    assert (result.outcome, result.code) == ("failed", "TOOL_ERROR")


async def test_an_aborted_body_is_never_tried_again() -> None:
    stage, controller = Stage(), AbortController()

    @tool(read_only=True, idempotent=True, retry=QUICK)
    async def work() -> str:
        return await stage.play("a")

    async with opened(work) as runner:
        batch = runner.start_batch([ToolCall("work")], signal=controller.signal)
        await stage.started("a")
        controller.abort()
        (result,) = await batch
    assert stage.entered == ["a"]
    assert (result.outcome, result.attempts) == ("aborted", 1)


@pytest.mark.virtual_time
async def test_an_attempt_that_runs_over_its_time_limit_is_tried_again_when_that_is_safe() -> None:
    tries: list[int] = []

    @tool(read_only=True, retry=QUICK, timeout=0.05)
    async def work(ctx: ToolContext[Any]) -> str:
        tries.append(ctx.attempt)
        if ctx.attempt == 1:
            await anyio.sleep_forever()
        assert not ctx.signal.aborted
        return "in time"

    async with opened(work) as runner:
        result = await runner.run("work")
    assert tries == [1, 2]
    assert (result.outcome, result.value, result.attempts) == ("succeeded", "in time", 2)
    # The first attempt's stop is not the call's: the call was not stopped.
    assert result.stop is None


async def test_a_retrying_call_that_waits_holds_its_locks_and_its_place_once() -> None:
    tries = list[int]()
    stage = Stage()

    @tool(read_only=True, retry=QUICK, resources=lambda _: ["db"])
    async def work(ctx: ToolContext[Any]) -> str:
        tries.append(ctx.attempt)
        assert runner._services is not None
        assert runner._services.leases.held == 1
        if ctx.attempt < 3:
            raise ToolError("again")
        return await stage.play("third")

    async with opened(work) as runner:
        batch = runner.start_batch([ToolCall("work"), ToolCall("work")])
        await stage.started("third")
        stage.end("third")
        one, two = await batch
    assert (one.attempts, two.attempts) == (3, 3)


async def test_invalid_output_of_a_repeatable_tool_is_a_failure_that_is_tried_again() -> None:
    tries: list[int] = []

    @tool(idempotent=True, retry=QUICK)
    async def work(ctx: ToolContext[Any]) -> Any:
        tries.append(ctx.attempt)
        return object() if ctx.attempt == 1 else "fine"

    async with opened(work) as runner:
        result = await runner.run("work")
    assert tries == [1, 2]
    assert result.value == "fine"
