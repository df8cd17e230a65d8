"""Messages, wakes and stops: who runs, who waits, who is dropped, however they meet (C, and the state machine K)."""

import anyio
import pytest
from agent.desk import at_work, hanging

from toolrunner.agent import AgentClosed, MessageState, Status
from toolrunner.testing import said_chunks

pytestmark = pytest.mark.anyio

BOUND = 60


@pytest.mark.case("C1")
async def test_a_cancel_of_an_idle_agent_does_nothing_and_the_next_prompt_runs() -> None:
    async with at_work("hello") as desk:
        with anyio.fail_after(BOUND):
            handle = desk.agent.cancel()
            report = await handle.settled()
            assert (report.turn, report.dropped, desk.records) == (None, (), [])
            await desk.agent.prompt("hi")
        assert desk.outcomes == ["completed"]


@pytest.mark.case("C2")
async def test_a_claim_is_not_restored_by_a_cancel_that_keeps_the_inbox() -> None:
    async with at_work("second only") as desk:
        with anyio.fail_after(BOUND):
            first = desk.agent.send("first")
            assert desk.agent.state(first.id) is MessageState.CLAIMED
            handle = desk.agent.cancel(keep_inbox=True)
            report = await handle.settled()
            assert handle.dropped == ()
            assert report.turn is not None
            assert report.turn.unadmitted == (first,)
            await desk.agent.wait_idle()
            assert desk.model.requests == []
            assert desk.agent.state(first.id) is None
            await desk.agent.prompt("second")
        assert desk.ends == [("aborted", "caller", "user"), ("completed", "", "")]
        assert desk.said == ["second"]
        assert desk.count("inbox/cancelled") == 0


@pytest.mark.case("C3")
async def test_what_waits_is_parked_by_a_cancel_that_keeps_the_inbox_until_the_next_wake() -> None:
    reply, gate = hanging(*said_chunks("a", closed=False))
    async with at_work(reply, "parked", "new") as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("active")
            await gate.reached(1)
            parked = desk.agent.send("parked")
            await desk.agent.cancel(keep_inbox=True).settled()
            await desk.agent.wait_idle()
            assert desk.agent.queued == (parked,)
            assert len(desk.model.requests) == 1
            await desk.agent.prompt("new")
        assert desk.said == ["active", "parked", "new"]
        assert desk.outcomes == ["aborted", "completed", "completed"]


@pytest.mark.case("C4")
async def test_a_wake_between_the_abort_and_idle_is_kept_and_runs_by_itself() -> None:
    reply, gate = hanging(*said_chunks("a", closed=False))
    async with at_work(reply, "b") as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await gate.reached(1)
            desk.agent.cancel(keep_inbox=True)
            desk.agent.send("B")
            await desk.agent.wait_idle()
        assert desk.outcomes == ["aborted", "completed"]
        assert desk.said == ["A", "B"]
        assert desk.agent.queued == ()


@pytest.mark.case("C5")
async def test_a_second_cancel_that_keeps_nothing_clears_the_kept_wake_too() -> None:
    reply, gate = hanging(*said_chunks("a", closed=False))
    async with at_work(reply, "c") as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await gate.reached(1)
            desk.agent.cancel(keep_inbox=True)
            second = desk.agent.send("B")
            assert desk.agent.cancel().dropped == (second,)
            await desk.agent.wait_idle()
            assert desk.outcomes == ["aborted"]
            await desk.agent.prompt("C")
        assert desk.said == ["A", "C"]


@pytest.mark.case("C6")
async def test_a_kept_wake_whose_message_was_taken_back_wakes_nothing() -> None:
    reply, gate = hanging(*said_chunks("a", closed=False))
    async with at_work(reply) as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await gate.reached(1)
            desk.agent.cancel(keep_inbox=True)
            steer = desk.agent.steer("B")
            assert steer.target == "next-turn"  # no step of a turn that is being stopped
            assert desk.agent.take_back(steer.id) == steer
            statuses: list[Status] = []
            desk.agent.on_status(statuses.append)
            await desk.agent.wait_idle()
        assert statuses == [Status.IDLE]
        assert desk.count("turn/start") == 1
        assert desk.agent.status is Status.IDLE


@pytest.mark.case("C7")
async def test_a_wake_is_kept_for_as_long_as_the_stopped_stream_takes_to_end() -> None:
    leaving, left = anyio.Event(), anyio.Event()

    async def slow_to_end() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                leaving.set()
                await left.wait()

    async with at_work([*said_chunks("a", closed=False), slow_to_end], "b") as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await anyio.wait_all_tasks_blocked()
            desk.agent.cancel(keep_inbox=True)
            await leaving.wait()
            desk.agent.send("B")
            await anyio.wait_all_tasks_blocked()
            assert desk.count("turn/start") == 1
            left.set()
            await desk.agent.wait_idle()
        assert desk.outcomes == ["aborted", "completed"]


@pytest.mark.case("C8")
async def test_a_wake_while_the_agent_closes_is_refused() -> None:
    reply, gate = hanging(*said_chunks("a", closed=False))
    async with at_work(reply) as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await gate.reached(1)
            desk.agent.dispose()
            with pytest.raises(AgentClosed):
                desk.agent.send("B")
            await desk.agent.aclose()
        assert len(desk.model.requests) == 1
        assert desk.ends == [("aborted", "shutdown", "the agent was closed")]


@pytest.mark.case("C9")
async def test_two_sends_and_a_cancel_in_one_tick_leave_one_turn_without_a_step() -> None:
    async with at_work() as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            second = desk.agent.send("B")
            assert desk.agent.cancel().dropped == (second,)
            await desk.agent.wait_idle()
        assert desk.types == ["inbox/queued", "turn/start", "inbox/claimed", "inbox/queued", "inbox/cancelled", "turn/end"]
        assert desk.outcomes == ["aborted"]


@pytest.mark.case("C10")
async def test_an_agent_that_is_closed_as_it_begins_to_run_opens_no_turn() -> None:
    async with at_work() as desk:
        desk.on_status(Status.RUNNING, desk.agent.dispose)
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await desk.agent.wait_idle()
        assert desk.types == ["inbox/queued"]
        assert desk.model.requests == []


@pytest.mark.case("C11")
async def test_who_waits_for_idle_is_told_when_a_turn_is_stopped_before_its_first_step() -> None:
    async with at_work() as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(desk.agent.wait_idle)
                await anyio.lowlevel.checkpoint()
                desk.agent.cancel()
        assert desk.agent.status is Status.IDLE


@pytest.mark.case("C12")
async def test_a_listener_may_send_at_idle_and_have_it_stopped_before_anything_is_said() -> None:
    async with at_work("a", "later") as desk:

        def replace_and_stop() -> None:
            desk.agent.send("replacement")
            desk.agent.cancel()

        desk.on_status(Status.IDLE, replace_and_stop)
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await desk.agent.wait_idle()
            assert (desk.count("turn/start"), len(desk.model.requests)) == (2, 1)
            await desk.agent.prompt("later")
        assert desk.said == ["A", "later"]
        assert desk.outcomes == ["completed", "aborted", "completed"]


@pytest.mark.case("C13")
async def test_a_listener_at_idle_sends_stops_and_sends_again_and_the_last_one_runs() -> None:
    async with at_work("a", "y", "third") as desk:

        def twice() -> None:
            desk.agent.send("X")
            desk.agent.cancel()
            desk.agent.send("Y")

        desk.on_status(Status.IDLE, twice)
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await desk.agent.wait_idle()
            await desk.agent.prompt("third")
        assert desk.said == ["A", "Y", "third"]


@pytest.mark.case("C28")
async def test_a_cancel_as_the_agent_begins_to_run_leaves_no_turn() -> None:
    async with at_work() as desk:
        desk.on_status(Status.RUNNING, desk.agent.cancel)
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
            await desk.agent.wait_idle()
        assert result.outcome == "dropped"
        assert desk.types == ["inbox/queued", "inbox/cancelled"]
        assert desk.model.requests == []


@pytest.mark.case("C29")
async def test_a_listener_replaces_the_message_that_made_the_agent_run() -> None:
    async with at_work("b", "c") as desk:

        def replace() -> None:
            desk.agent.cancel()
            desk.agent.send("B")

        desk.on_status(Status.RUNNING, replace)
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await desk.agent.wait_idle()
            await desk.agent.prompt("C")
        assert desk.said == ["B", "C"]
        assert desk.outcomes == ["completed", "completed"]


@pytest.mark.case("C30")
async def test_a_message_behind_a_turn_that_was_stopped_before_its_step_runs() -> None:
    async with at_work("b", "c") as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            desk.agent.cancel()
            desk.agent.send("B")
            await desk.agent.wait_idle()
            await desk.agent.prompt("C")
        assert desk.said == ["B", "C"]
        assert desk.outcomes == ["aborted", "completed", "completed"]


@pytest.mark.case("C31")
async def test_steer_that_was_not_delivered_is_handed_back_and_becomes_no_turn() -> None:
    reply, gate = hanging(*said_chunks("a", closed=False))
    async with at_work(reply) as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await gate.reached(1)
            steer = desk.agent.steer("more")
            assert desk.agent.cancel().dropped == (steer,)
            await desk.agent.wait_idle()
        assert desk.count("turn/start") == 1
        assert desk.said == ["A"]


@pytest.mark.case("C32")
async def test_what_is_sent_when_the_turn_hears_of_its_abort_runs_behind_it() -> None:
    reply, gate = hanging(*said_chunks("a", closed=False))
    async with at_work(reply, "replacement", "later") as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await gate.reached(1)
            activity = desk.agent._phases.activity
            assert activity is not None
            activity.signal.on_abort(lambda: desk.agent.send("replacement"))
            desk.agent.cancel()
            await desk.agent.wait_idle()
            while len(desk.outcomes) < 2:  # the callback may come in a later tick than idle
                await anyio.lowlevel.checkpoint()
            await desk.agent.wait_idle()
            await desk.agent.prompt("later")
        assert desk.said == ["A", "replacement", "later"]
        assert desk.outcomes == ["aborted", "completed", "completed"]
