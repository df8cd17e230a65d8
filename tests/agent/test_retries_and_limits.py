"""Requests that fail, are made again, or are not made because a limit is reached."""

from typing import Any

import anyio
import pytest
from agent.desk import at_work

from toolrunner import AbortSignal, tool
from toolrunner.agent import Hooks, ModelError, Prices, Retries, StepView
from toolrunner.history.chunks import Finish, Stop, Usage
from toolrunner.testing import ScriptedModel, call_chunks, said_chunks

pytestmark = pytest.mark.anyio

BOUND = 60
AT_ONCE = Retries(attempts=3, first_wait=0)


async def test_a_stream_that_ends_before_its_end_is_an_error_and_no_message() -> None:
    model = ScriptedModel(said_chunks("half"), "whole", finish=False)
    async with at_work(model=model, retries=Retries(attempts=1)) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
        assert (result.outcome, result.error) == ("error", "the response ended before its end")
        assert desk.count("assistant/message") == 0


async def test_a_provider_that_breaks_off_by_itself_is_an_error_and_no_stop() -> None:
    async with at_work([*said_chunks("half"), Finish(Stop.ABORTED)], retries=Retries(attempts=1)) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
        assert result.outcome == "error"
        assert desk.of("assistant/attempt")[0].cause == "aborted"


async def test_an_error_that_asking_again_cannot_mend_is_not_asked_again_unless_the_host_says_so() -> None:
    asked: list[int] = []

    async def insist(view: StepView, error: ModelError, signal: AbortSignal) -> bool:
        asked.append(view.step)
        return len(asked) == 1

    fatal = ModelError("400: bad request", retryable=False)
    async with at_work([fatal], [fatal], "never", retries=AT_ONCE, hooks=Hooks(request_error=insist)) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
        assert (result.outcome, result.error) == ("error", "400: bad request")
        assert len(desk.model.requests) == 2
        assert asked == [1, 1]


async def test_attempts_are_bounded_and_the_last_error_is_told() -> None:
    errors = [[ModelError(f"overloaded {number}", retryable=True)] for number in range(5)]
    async with at_work(*errors, retries=AT_ONCE) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
        assert result.error == "overloaded 2"
        assert desk.count("assistant/attempt") == desk.count("request/sent") == 3


@pytest.mark.virtual_time
async def test_a_stop_ends_the_wait_for_another_attempt() -> None:
    busy = ModelError("overloaded", retryable=True, retry_after=30)
    async with at_work([busy], "never") as desk:
        begun, failed = anyio.current_time(), anyio.Event()
        desk.when("assistant/attempt", failed.set)
        desk.agent.send("A")
        with anyio.fail_after(BOUND):
            await failed.wait()
            await anyio.wait_all_tasks_blocked()
            await desk.agent.cancel().settled()
        assert anyio.current_time() - begun < 5
        assert desk.outcomes == ["aborted"]
        assert len(desk.model.requests) == 1


@pytest.mark.virtual_time
async def test_a_provider_that_says_how_long_is_believed_up_to_the_longest_wait() -> None:
    busy, closed = ModelError("busy", retryable=True, retry_after=30), ModelError("closed", retryable=True, retry_after=3600)
    async with at_work([busy], [closed], "never") as desk:
        begun = anyio.current_time()
        result = await desk.agent.prompt("A")
        assert 30 <= anyio.current_time() - begun < 40
        assert result.error == "closed"


@pytest.mark.virtual_time
async def test_a_host_that_insists_waits_no_longer_than_the_longest_wait() -> None:
    async def insist(view: StepView, error: ModelError, signal: AbortSignal) -> bool:
        return True

    closed = ModelError("closed", retryable=True, retry_after=3600)
    async with at_work([closed], "open", hooks=Hooks(request_error=insist)) as desk:
        begun = anyio.current_time()
        result = await desk.agent.prompt("A")
        assert 60 <= anyio.current_time() - begun < 70
        assert result.text == "open"


@pytest.mark.parametrize(
    "limits, wanted",
    [
        ({"max_steps": 2}, "the limit of 2 steps is reached"),
        ({"max_tokens": 150}, "the limit of 150 tokens is reached"),
        ({"max_cost": 0.001}, "the limit of costs, 0.001, is reached"),
    ],
)
async def test_a_limit_stops_the_turn_once_and_the_marker_says_so(limits: dict[str, Any], wanted: str) -> None:
    @tool(read_only=True)
    async def look() -> str:
        """Look."""
        return "nothing"

    step = [Usage({"input_tokens": 50, "output_tokens": 50}), *call_chunks("look", {})]
    prices = Prices(input=1, output=14)
    model = ScriptedModel(step, step, step, "after", prices=prices)
    async with at_work(model=model, tools=[look], **limits) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
        assert (result.outcome, result.steps) == ("aborted", 2)
        assert desk.ends == [("aborted", "cost", wanted)]
        assert len(desk.model.requests) == 2
        assert desk.of("turn/end")[0].interrupt == "cost"


async def test_a_limit_of_costs_is_refused_where_nobody_knows_them() -> None:
    with pytest.raises(ValueError, match="max_cost"):
        async with at_work("a", max_cost=1.0):
            pass
