"""A turn that is stopped: in a step, in its hooks, between calls that are committed and their bodies, or just before its end."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from agent.desk import at_work, hanging, last_words

from toolrunner import AbortSignal, ToolContext, tool
from toolrunner.agent import Hooks
from toolrunner.results import Code
from toolrunner.testing import call_chunks, said_chunks

pytestmark = pytest.mark.anyio

BOUND = 60


@pytest.mark.case("C14")
async def test_a_cancel_in_a_step_ends_one_turn_and_takes_back_what_waits() -> None:
    reply, gate = hanging(*said_chunks("a", closed=False))
    async with at_work(reply) as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await gate.reached(1)
            tail = [desk.agent.send("B"), desk.agent.send("C")]
            handle = desk.agent.cancel("enough")
            assert list(handle.dropped) == tail
            await handle.settled()
            await desk.agent.wait_idle()
        assert desk.ends == [("aborted", "caller", "enough")]
        assert len(desk.model.requests) == 1
        (cancelled,) = desk.of("inbox/cancelled")
        assert cancelled.message_ids == tuple(message.id for message in tail)


@pytest.mark.case("C15")
async def test_calls_that_were_committed_when_the_stop_came_are_answered_and_not_run() -> None:
    ran: list[str] = []

    @tool(destructive=True)
    async def danger(name: str) -> str:
        """Do it."""
        ran.append(name)
        return "done"

    async with at_work(call_chunks("danger", {"name": "x"}, call_id="c1"), "later", tools=[danger]) as desk:
        desk.when("assistant/message", desk.agent.cancel)
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
            assert ran == []
            assert [(one.call_id, one.code) for one in result.results] == [("c1", Code.ABORTED_BEFORE_DISPATCH)]
            await desk.agent.prompt("B")
        assert desk.outcomes == ["aborted", "completed"]
        answer = desk.model.requests[-1].messages[-1]["content"]
        assert [part["type"] for part in answer] == ["tool_result", "text", "text"]
        assert answer[0]["tool_use_id"] == "c1"
        assert answer[0]["is_error"]


@pytest.mark.case("C16")
async def test_a_turn_after_a_stopped_one_runs_normally() -> None:
    reply, gate = hanging(*said_chunks("a", closed=False))
    async with at_work(reply, "b") as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await gate.reached(1)
            await desk.agent.cancel().settled()
            await desk.agent.wait_idle()
            result = await desk.agent.prompt("B")
        assert (result.outcome, result.text, result.reason) == ("completed", "b", None)
        assert desk.outcomes == ["aborted", "completed"]


@pytest.mark.case("C33", "E18")
async def test_the_first_of_two_causes_is_the_one_on_record() -> None:
    reply, gate = hanging(*said_chunks("a", closed=False))
    async with at_work(reply) as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await gate.reached(1)
            desk.agent.cancel("the parent was stopped", source="parent")
            report = await desk.agent.cancel("user").settled()
        assert desk.ends == [("aborted", "parent", "the parent was stopped")]
        assert report.turn is not None
        assert report.turn.reason is not None
        assert report.turn.reason.source == "parent"


@pytest.mark.case("E18")
async def test_the_first_cause_is_that_of_the_calls_and_the_turn_alike() -> None:
    begun = anyio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        await anyio.sleep_forever()
        return "never"

    async with at_work(call_chunks("wait", {}), tools=[wait]) as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await begun.wait()
            desk.agent.cancel("the money is gone", source="cost")
            report = await desk.agent.cancel("user").settled()
        assert report.turn is not None
        (result,) = report.turn.results
        assert result.stop is not None
        assert (result.stop.source, result.stop.reason) == ("cost", "the money is gone")
        (requested,) = desk.of("call/stop_requested")
        assert (requested.source, requested.reason) == ("cost", "the money is gone")
        assert desk.ends == [("aborted", "cost", "the money is gone")]


@pytest.mark.case("C34")
async def test_a_user_s_cancel_before_the_agent_closes_is_what_the_turn_s_end_says() -> None:
    reply, gate = hanging(*said_chunks("a", closed=False))
    async with at_work(reply) as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await gate.reached(1)
            desk.agent.cancel("user")
            await desk.agent.aclose()
        assert desk.ends == [("aborted", "caller", "user")]


class Waits:
    """A hook that waits for its turn's signal, as a cooperative one does."""

    def __init__(self, answer: Any = None) -> None:
        self.reached = anyio.Event()
        self.signals: list[AbortSignal] = []
        self.ended = 0
        self.answer = answer

    async def __call__(self, *given: Any) -> Any:
        self.signals.append(given[-1])
        self.reached.set()
        try:
            await given[-1].wait()
            return self.answer
        finally:
            self.ended += 1


@pytest.mark.parametrize(
    "place, steps, requests",
    [
        pytest.param("pre_step", 0, 0, marks=pytest.mark.case("C35", "S24")),
        pytest.param("system", 0, 0, marks=pytest.mark.case("C36", "S24")),
        pytest.param("request", 1, 0, marks=pytest.mark.case("C37")),
        pytest.param("turn_stopping", 1, 1, marks=pytest.mark.case("C38")),
    ],
)
@pytest.mark.parametrize("how", ["cancel", "dispose"])
async def test_a_hook_that_waits_gets_the_turn_s_signal_and_settles(place: str, steps: int, requests: int, how: str) -> None:
    waits = Waits(answer="" if place == "system" else None)
    async with at_work("a", hooks=Hooks(**{place: waits})) as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await waits.reached.wait()
            (signal,) = waits.signals
            assert not signal.aborted
            stop: Callable[[], object] = desk.agent.cancel if how == "cancel" else desk.agent.dispose
            stop()
            assert signal.aborted
            await desk.agent.wait_idle()
        assert waits.ended == 1
        assert desk.outcomes == ["aborted"]
        assert desk.ends[0][1] == ("caller" if how == "cancel" else "shutdown")
        assert (desk.count("step/start"), desk.count("step/end"), len(desk.model.requests)) == (steps, steps, requests)


@pytest.mark.case("C39")
async def test_a_body_that_waits_gets_the_turn_s_signal_and_settles() -> None:
    begun = anyio.Event()

    @tool
    async def wait(ctx: ToolContext[None]) -> str:
        """Wait until told to stop."""
        begun.set()
        await ctx.signal.wait()
        return "stopped by itself"

    async with at_work(call_chunks("wait", {}), tools=[wait]) as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await begun.wait()
            report = await desk.agent.cancel().settled()
        assert report.turn is not None
        assert [result.started for result in report.turn.results] == [True]
        assert desk.ends == [("aborted", "caller", "user")]


@pytest.mark.case("C27")
async def test_a_cancel_while_the_turn_is_about_to_stop_leaves_no_completed_turn() -> None:
    async def stop(*_: object) -> None:
        desk.agent.cancel()

    async with at_work("a", "b", hooks=Hooks(turn_stopping=stop)) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
        assert (result.outcome, result.steps, result.text) == ("aborted", 1, "a")
        assert len(desk.model.requests) == 1


async def test_what_is_steered_in_while_the_turn_is_about_to_stop_is_another_step() -> None:
    left = ["wait"]

    async def steer(*_: object) -> None:
        if left:
            desk.agent.steer(left.pop())

    async with at_work("a", "b", hooks=Hooks(turn_stopping=steer)) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
        assert (result.outcome, result.steps, result.text) == ("completed", 2, "b")
        assert desk.said == ["A", "wait"]


async def test_what_is_steered_in_while_the_turn_is_about_to_stop_is_parked_by_a_cancel_that_keeps_the_inbox() -> None:
    async def steer_and_stop(*_: object) -> None:
        desk.agent.steer("wait")
        desk.agent.cancel(keep_inbox=True)

    async with at_work("a", hooks=Hooks(turn_stopping=steer_and_stop)) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
            await desk.agent.wait_idle()
        assert (result.outcome, result.unadmitted) == ("aborted", ())
        assert [message.text for message in desk.agent.queued] == ["wait"]


async def test_a_cancel_that_comes_behind_a_turn_s_end_marks_nothing() -> None:
    async with at_work("a", "b") as desk:
        desk.when("turn/end", desk.agent.cancel)
        with anyio.fail_after(BOUND):
            assert (await desk.agent.prompt("A")).outcome == "completed"
            await desk.agent.wait_idle()
            await desk.agent.prompt("B")
        assert last_words(desk.model.requests[-1].messages) == ["B"]


@pytest.mark.case("C25")
async def test_a_cancel_as_a_step_begins_streams_nothing_and_closes_the_step() -> None:
    async with at_work() as desk:
        desk.when("step/start", desk.agent.cancel)
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
        assert result.outcome == "aborted"
        assert desk.model.requests == []
        assert desk.types[-3:] == ["step/start", "step/end", "turn/end"]
        assert desk.said == []


@pytest.mark.case("C26")
async def test_an_agent_that_closes_as_a_step_begins_asks_nobody_and_closes_the_step() -> None:
    async with at_work() as desk:
        desk.when("step/start", desk.agent.dispose)
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
        assert result.outcome == "aborted"
        assert desk.model.requests == []
        assert (desk.count("step/start"), desk.count("step/end")) == (1, 1)
        assert desk.ends[0][1] == "shutdown"


async def test_a_hook_that_raises_ends_the_turn_with_its_error_and_the_next_turn_runs() -> None:
    left = [RuntimeError("no route")]

    async def broken(*_: object) -> None:
        if left:
            raise left.pop()

    hook: Callable[..., Awaitable[None]] = broken
    async with at_work("b", hooks=Hooks(request=hook)) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
            assert (result.outcome, result.error) == ("error", "no route")
            await desk.agent.prompt("B")
        assert desk.outcomes == ["error", "completed"]
        assert (desk.count("step/start"), desk.count("step/end")) == (2, 2)
