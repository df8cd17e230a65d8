"""Post hooks: what they may put in place of an answer, and that nothing of theirs takes away a fact."""

from typing import Any

import anyio
import pytest
from pipeline.bench import HOOK_FAILED_AFTER, SUCCEEDED, Coded, effects, facts, open_runner, stop_of, stopped_at, text
from pipeline.writing import COMPLETED, WRITE, check_finished_first, check_write_is_kept, write

from toolrunner import MemoryJournal, ToolCall, ToolResult, block, replace
from toolrunner.facts import StopPhase, Text
from toolrunner.results import ErrorKind, Outcome
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio


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
