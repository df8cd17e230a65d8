"""What bodies return, and whoever tries to change it: the call has one result, and that is what it was."""

import logging
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from pipeline.bench import SUCCEEDED, check_round_trip, effects, facts, open_runner, text
from pipeline.failing import NoAttributes, entered, fail

from toolrunner import AbortSignal, Reply, ToolCall, ToolContext, ToolResult, tool
from toolrunner.facts import EffectState, Text
from toolrunner.results import Code, Ended, Error, Outcome

pytestmark = pytest.mark.anyio


SPOILING: list[Callable[[Any], object]] = [
    lambda r: setattr(r, "outcome", Outcome.FAILED),
    lambda r: setattr(r.effects, "state", EffectState.NONE),
    lambda r: r.value.update(path="other"),
    lambda r: r.value["lines"].append(2),
    lambda r: r.value["lines"][1].clear(),
    lambda r: r.arguments.update(path="other"),
    lambda r: r.content.append(Text("more")),
    lambda r: r.content[0].json.clear(),
    lambda r: r.follow_up[0]["kept"].append("no"),
    lambda r: r.provider_meta.update(x=1),
]


def refusals(result: ToolResult, where: str) -> list[str]:
    """Try to change everything that can be reached; returns what was refused."""
    found = []
    for number, attempt in enumerate(SPOILING):
        try:
            attempt(result)
        except (FrozenInstanceError, TypeError, AttributeError):
            found.append(f"{where} {number}")
    return found


@pytest.mark.case("T25")
async def test_no_hook_wrapper_or_observer_can_change_a_result_or_its_arguments() -> None:
    @tool
    async def describe(ctx: ToolContext[Any], path: str) -> dict[str, Any]:
        """Return something nested."""
        ctx.follow_up({"kept": ["yes"]})
        return {"path": path, "lines": [1, {"deep": True}]}

    refused: list[str] = []
    async with open_runner([describe]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            with pytest.raises(TypeError):
                call.arguments["path"] = "other"  # type: ignore[index]
            result = await go_on(call)
            refused.extend(refusals(result, "wrapper"))
            return result

        async def post(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
            refused.extend(refusals(result, "post"))

        def observe(record: Any) -> None:
            if record.type == "call/settled":
                refused.extend(refusals(record.result, "observer"))

        runner.use(wrap)
        runner.post_execute(post)
        runner.on_record(observe)
        result = await runner.run(ToolCall("describe", {"path": "a"}, provider_meta={"item": "x"}))
        refused.extend(refusals(result, "caller"))
    assert facts(result) == SUCCEEDED
    assert result.value == {"path": "a", "lines": [1, {"deep": True}]}
    assert (result.arguments, result.follow_up) == ({"path": "a"}, ({"kept": ["yes"]},))
    assert refused == [f"{where} {number}" for where in ("wrapper", "post", "observer", "caller") for number in range(10)]


async def test_what_a_body_returned_is_not_changed_by_what_it_does_to_it_later() -> None:
    kept: list[dict[str, int]] = []

    @tool
    async def lend() -> dict[str, int]:
        """Keep what is returned."""
        kept.append({"a": 1})
        return kept[0]

    async with open_runner([lend]) as runner:
        result = await runner.run("lend")
        kept[0]["a"] = 2
    assert result.value == {"a": 1}


@pytest.mark.case("T25")
async def test_an_observer_that_raises_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []
    async with open_runner([fail]) as runner:

        def observe(record: Any) -> None:
            seen.append(record.type)
            raise RuntimeError("broken observer")

        runner.on_record(observe)
        with caplog.at_level(logging.CRITICAL):
            batch = await runner.run_batch([ToolCall("fail"), ToolCall("fail")], on_event=observe)
    assert [facts(result) for result in batch] == [SUCCEEDED] * 2
    assert len(seen) == 2 * len({"call/recorded", "call/decided", "call/dispatched", "call/ended", "call/settled"}) * 2


@pytest.mark.parametrize("make", [NoAttributes, object, lambda: float("nan"), lambda: "\udc80", lambda: 10**5_000], ids=range(5))
async def test_a_return_value_that_cannot_be_said_is_the_tools_failure_and_it_ran(make: Callable[[], object]) -> None:
    @tool
    async def odd() -> Any:
        """Return it."""
        entered.append("odd")
        return make()

    async with open_runner([odd]) as runner:
        result = await runner.run("odd")
    assert entered == ["odd"]
    assert facts(result) == (Outcome.FAILED, Code.INVALID_OUTPUT, True, Ended.RETURNED)
    assert "not started" not in text(result)
    check_round_trip(result)


async def test_a_reply_with_an_error_is_a_failure_that_keeps_its_value() -> None:
    @tool
    async def half() -> Reply:
        """Do half."""
        return Reply({"sent": 3}, (Text("3 of 5 sent"),), error=Error("half", "2 were refused"))

    async with open_runner([half]) as runner:
        result = await runner.run("half")
    assert facts(result) == (Outcome.FAILED, Code.TOOL_ERROR, True, Ended.RETURNED)
    assert (result.value, result.content, result.is_error) == ({"sent": 3}, (Text("3 of 5 sent"),), True)
    assert effects(result) == (EffectState.UNKNOWN, None)
    assert "2 were refused" in text(result)
