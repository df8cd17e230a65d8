"""Aborts that find a started body, and those that come after it: nothing the call produced is lost, and nothing is denied."""

from typing import Any

import anyio
import pytest
from pipeline.bench import (
    FINISHED_FIRST,
    HOOK_FAILED_AFTER,
    RAISED,
    STOPPED,
    SUCCEEDED,
    WRAPPER_FAILED_BEFORE,
    check_never_started,
    check_stopped_early,
    effects,
    facts,
    only,
    open_runner,
    stop_of,
    stopped_at,
    text,
    types_of,
)
from stillness import all_blocked

from toolrunner import (
    AbortController,
    MemoryJournal,
    Reply,
    ToolCall,
    ToolContext,
    ToolError,
    ToolResult,
    block,
    replace,
    tool,
)
from toolrunner.errors import NotSettled
from toolrunner.facts import EffectStage, EffectState, Evidence, StopPhase, Text
from toolrunner.results import ErrorKind, Outcome
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio

COMPLETED = (EffectState.COMPLETED, Evidence.REPORTED)


@tool
async def write(ctx: ToolContext[Any], path: str) -> str:
    """Write a file, say so, and hand something on."""
    async with ctx.effect("file", path) as effect:
        effect.receipt = "sha 1"
    ctx.follow_up({"from": "body"})
    return f"wrote {path}"


WRITE = ToolCall("write", {"path": "a"}, call_id="c1")


def check_write_is_kept(result: ToolResult) -> None:
    assert result.value == "wrote a"
    assert effects(result) == COMPLETED
    [record] = result.effects.records
    assert (record.kind, record.target, record.stage, record.receipt) == ("file", "a", EffectStage.APPLIED, "sha 1")
    assert "Its change was made: a" in text(result)
    assert "not started" not in text(result)


def check_finished_first(result: ToolResult, reason: str = "enough") -> None:
    assert facts(result) == FINISHED_FIRST
    assert stop_of(result) == ("caller", reason, StopPhase.FINISHING)
    assert result.stop is not None
    assert result.stop.delivered_at is None
    assert "The call finished before it could be stopped." in text(result)
    assert (result.is_error, result.error, result.retry) == (False, None, "no")
    check_write_is_kept(result)


@pytest.mark.case("T7")
async def test_an_abort_while_a_wrapper_still_waits_keeps_everything_of_the_body() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def wrap(call: ToolCall, go_on: Any) -> Reply:
            result = await go_on(call)
            await gate.wait()
            return Reply(result.value, result.content, (*result.follow_up, {"from": "wrapper"}))

        runner.use(wrap)
        result = await stopped_at(runner, gate, WRITE)
    check_finished_first(result)
    assert result.follow_up == ({"from": "body"}, {"from": "wrapper"})


@pytest.mark.case("T8")
async def test_an_abort_while_a_post_hook_waits_keeps_follow_ups_of_call_and_hook_in_order() -> None:
    journal = MemoryJournal()
    async with open_runner([write], journal=journal) as runner:
        gate = Gate()

        async def post(call: ToolCall, result: ToolResult, signal: Any) -> Any:
            assert facts(result) == SUCCEEDED
            await gate.wait()
            assert signal.aborted
            return replace(result.content, follow_up=[{"from": "post"}])

        runner.post_execute(post)
        result = await stopped_at(runner, gate, WRITE)
    check_finished_first(result)
    assert result.follow_up == ({"from": "body"}, {"from": "post"})
    [ended] = [record for record in journal if record.type == "call/ended"]
    assert (ended.outcome, ended.value) == (Outcome.SUCCEEDED, "wrote a")  # the body itself was not stopped


class Coded(Exception):
    kind = "quota"


@pytest.mark.case("T9")
@pytest.mark.parametrize("went_on", [True, False])
async def test_a_coded_error_of_a_wrapper_outranks_the_abort(went_on: bool) -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def wrap(call: ToolCall, go_on: Any) -> None:
            if went_on:
                await go_on(call)
            await gate.wait()
            raise Coded("no credit left")

        runner.use(wrap)
        result = await stopped_at(runner, gate, WRITE)
    assert result.error is not None
    assert (result.error.kind, "no credit left" in result.error.message) == ("quota", True)
    if went_on:
        assert facts(result) == HOOK_FAILED_AFTER
        check_write_is_kept(result)
    else:
        check_never_started(result, WRAPPER_FAILED_BEFORE)
    assert stop_of(result)[2] == (StopPhase.FINISHING if went_on else StopPhase.BEFORE_DISPATCH)


@pytest.mark.case("T9")
async def test_a_coded_error_after_a_refused_dispatch_outranks_the_abort_too() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def wrap(call: ToolCall, go_on: Any) -> None:
            await gate.wait()
            check_stopped_early(await go_on(call))
            raise Coded("no credit left")

        runner.use(wrap)
        result = await stopped_at(runner, gate, WRITE)
    check_never_started(result, WRAPPER_FAILED_BEFORE)
    assert result.error is not None
    assert result.error.kind == "quota"
    assert stop_of(result) == ("caller", "enough", StopPhase.BEFORE_DISPATCH)


@pytest.mark.case("T9")
async def test_a_wrapper_that_only_hands_the_abort_on_has_not_failed() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()
        stop = AbortController()

        async def wrap(call: ToolCall, go_on: Any) -> None:
            await go_on(call)
            await gate.wait()
            stop.signal.raise_if_aborted()

        runner.use(wrap)
        batch = runner.start_batch([WRITE], signal=stop.signal)
        await gate.reached()
        stop.abort("enough")
        gate.open()
        check_finished_first(only(await batch.results()))


@pytest.mark.case("T10")
async def test_a_body_that_sees_the_abort_and_fails_in_its_own_words_keeps_its_code() -> None:
    @tool
    async def refuse(ctx: ToolContext[Any]) -> None:
        """Fail when told to stop."""
        try:
            await gate.wait()
        except anyio.get_cancelled_exc_class():
            assert ctx.signal.aborted
            raise ToolError("half the pages were sent", kind="half_sent") from None

    async with open_runner([refuse]) as runner:
        gate = Gate()
        result = await stopped_at(runner, gate, ToolCall("refuse"))
    assert facts(result) == RAISED
    assert result.error is not None
    assert (result.error.kind, result.error.message) == ("half_sent", "half the pages were sent")
    assert stop_of(result) == ("caller", "enough", StopPhase.RUNNING)
    assert result.stop is not None
    assert result.stop.delivered_at is not None
    assert result.stop.ended_at is not None
    assert effects(result) == (EffectState.UNKNOWN, None)
    assert "It may have taken effect" in text(result)
    assert result.retry == "check_first"


@pytest.mark.case("T11")
async def test_a_coded_error_of_a_post_hook_outranks_the_abort() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def post(call: ToolCall, result: ToolResult, signal: Any) -> None:
            await gate.wait()
            raise Coded("cannot redact")

        runner.post_execute(post)
        result = await stopped_at(runner, gate, WRITE)
    assert facts(result) == HOOK_FAILED_AFTER
    assert result.error is not None
    assert (result.error.kind, "cannot redact" in result.error.message) == ("quota", True)
    assert stop_of(result) == ("caller", "enough", StopPhase.FINISHING)
    check_write_is_kept(result)


async def test_a_post_hook_that_only_hands_the_abort_on_has_not_failed() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def post(call: ToolCall, result: ToolResult, signal: Any) -> None:
            await gate.wait()
            signal.raise_if_aborted()

        runner.post_execute(post)
        check_finished_first(await stopped_at(runner, gate, WRITE))


@pytest.mark.case("T14")
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_a_body_that_ignores_the_abort_keeps_its_result_open_until_it_is_over(kind: str) -> None:
    @tool(name="stubborn")
    async def in_task(ctx: ToolContext[Any]) -> dict[str, int]:
        """Ignore the cancel."""
        async with ctx.effect("file", "first"):
            pass
        ctx.follow_up("kept")
        with ctx.cleanup():
            await gate.wait()
        return {"lines": 3}

    @tool(name="stubborn")
    def in_thread(ctx: ToolContext[Any]) -> dict[str, int]:
        """Never look at the signal."""
        with ctx.effect("file", "first"):
            pass
        ctx.follow_up("kept")
        gate.wait_blocking()
        return {"lines": 3}

    journal = MemoryJournal()
    async with open_runner([in_task if kind == "async" else in_thread], journal=journal) as runner:
        gate = Gate()
        stop = AbortController()
        batch = runner.start_batch([ToolCall("stubborn")], signal=stop.signal)
        await gate.reached()
        stop.abort("enough")
        await all_blocked()
        assert types_of(journal)[-2:] == ["call/stop_requested", "call/stop_delivered"]
        with pytest.raises(NotSettled):
            runner.result(batch.run_ids[0])
        gate.open()
        result = only(await batch.results())
    assert facts(result) == FINISHED_FIRST
    assert (result.value, result.follow_up) == ({"lines": 3}, ("kept",))
    # The cancel came to the task as it left its block, so nobody knows whether more was to follow.
    assert effects(result) == (COMPLETED if kind == "sync" else (EffectState.PARTIAL, Evidence.REPORTED))
    assert stop_of(result) == ("caller", "enough", StopPhase.RUNNING)
    assert result.stop is not None
    assert result.stop.delivered_at is not None
    assert result.stop.ended_at is not None
    assert result.stop.requested_at <= result.stop.delivered_at <= result.stop.ended_at
    assert (result.still_running, result.is_error) == ((), False)
    assert result.content_for_model()[0] == result.content[0]
    assert "The call finished before it could be stopped." in text(result)


async def test_a_body_that_gives_way_is_stopped_and_its_announced_write_stays_open() -> None:
    @tool
    async def half(ctx: ToolContext[Any]) -> None:
        """Stop between announcing a write and confirming it."""
        async with ctx.effect("file", "done"):
            pass
        async with ctx.effect("file", "open"):
            await gate.wait()

    async with open_runner([half]) as runner:
        gate = Gate()
        result = await stopped_at(runner, gate, ToolCall("half"))
    assert facts(result) == STOPPED
    assert effects(result) == (EffectState.UNKNOWN, Evidence.REPORTED)
    assert [(record.target, record.stage) for record in result.effects.records] == [
        ("done", EffectStage.APPLIED),
        ("open", EffectStage.UNKNOWN),
    ]
    assert result.is_error
    assert "It may have taken effect; check before you repeat it." in text(result)
    assert result.retry == "check_first"


@pytest.mark.parametrize("late", ["block", "raise", "hang", "nonsense"])
@pytest.mark.virtual_time
async def test_no_post_hook_takes_a_fact_away(late: str) -> None:
    async with open_runner([write], hook_timeout=0.05 if late == "hang" else 30.0) as runner:

        async def post(call: ToolCall, result: ToolResult, signal: Any) -> Any:
            match late:
                case "block":
                    return block("secret inside")
                case "raise":
                    raise Coded("broken")
                case "hang":
                    await anyio.sleep_forever()
            return {"replace": "nothing"}

        runner.post_execute(post)
        result = await runner.run(WRITE)
    assert facts(result) == HOOK_FAILED_AFTER
    assert effects(result) == COMPLETED
    assert (result.follow_up, result.stop) == (({"from": "body"},), None)
    assert result.error is not None
    expected = {"block": ErrorKind.HOOK, "raise": "quota", "hang": ErrorKind.HOOK_TIMEOUT, "nonsense": ErrorKind.HOOK}
    assert result.error.kind == expected[late]
    assert "Its change was made: a" in text(result)
    if late == "block":
        assert (result.value, result.content) == (None, (Text("secret inside"),))
        assert "wrote a" not in text(result)
    else:
        assert (result.value, result.content) == ("wrote a", (Text("wrote a"),))


async def test_a_post_hook_replaces_what_the_model_reads_and_nothing_else() -> None:
    async with open_runner([write]) as runner:

        async def post(call: ToolCall, result: ToolResult, signal: Any) -> Any:
            return replace("a summary")

        runner.post_execute(post)
        result = await runner.run(WRITE)
    assert facts(result) == SUCCEEDED
    assert (result.value, result.content) == ("wrote a", (Text("a summary"),))
    assert effects(result) == COMPLETED
    assert text(result) == "a summary"


CANNOT_BE_SENT = {
    "an object": [object()],
    "a number": [5],
    "a lone surrogate": "x\udc80",
    "a text with one": [Text("x\udc80")],
    "a text of a number": [Text(5)],  # type: ignore[arg-type]
}


@pytest.mark.parametrize("content", CANNOT_BE_SENT.values(), ids=CANNOT_BE_SENT)
async def test_content_of_a_post_hook_that_no_provider_could_be_sent_is_that_hooks_failure(content: Any) -> None:
    async with open_runner([write]) as runner:

        async def post(call: ToolCall, result: ToolResult, signal: Any) -> Any:
            return replace(content)

        runner.post_execute(post)
        result = await runner.run(WRITE)
    assert facts(result) == HOOK_FAILED_AFTER
    assert (result.value, result.content) == ("wrote a", (Text("wrote a"),))
    assert result.to_provider("anthropic")
