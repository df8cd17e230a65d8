"""Steer, follow-ups, injections, events of the host, maintenance, and prompts that nobody waits for any more."""

from pathlib import Path

import anyio
import pytest
from agent.desk import at_work, hanging

from toolrunner import Runner
from toolrunner.agent import AgentClosed, AgentLoop, Message, Session, Status
from toolrunner.effects import DURABLE_WAIT
from toolrunner.errors import JournalFailed
from toolrunner.journal import SqliteJournal
from toolrunner.testing import Gate, ScriptedModel, said_chunks

pytestmark = pytest.mark.anyio

BOUND = 60


async def test_steer_is_a_step_of_the_turn_under_way_and_a_follow_up_is_a_turn_of_its_own() -> None:
    reply, gate = hanging(*said_chunks("a"))
    async with at_work(reply, "b", "c") as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await gate.reached(1)
            desk.agent.follow_up("later")
            desk.agent.steer("now")
            gate.open()
            await desk.agent.wait_idle()
        assert desk.said == ["A", "now", "later"]
        assert desk.count("turn/start") == 2
        assert desk.count("step/start") == 3


async def test_what_is_injected_wakes_nobody_and_goes_with_the_next_request() -> None:
    async with at_work("a") as desk:
        with anyio.fail_after(BOUND):
            desk.agent.inject("it rains")
            await desk.agent.wait_idle()
            assert desk.model.requests == []
            await desk.agent.prompt("A")
        assert desk.said == ["it rains", "A"]


async def test_an_event_of_the_host_survives_a_cancel_and_stands_behind_the_marker() -> None:
    reply, gate = hanging(*said_chunks("half", closed=False))
    async with at_work(reply, "b") as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await gate.reached(1)
            desk.agent.inject("the build is red", source="host")
            note = desk.agent.inject("context")
            assert desk.agent.cancel().dropped == (note,)
            await desk.agent.wait_idle()
            await desk.agent.prompt("B")
        last = desk.model.requests[-1].messages[-1]
        assert [part["text"] for part in last["content"]] == ["[Request interrupted by user]", "the build is red", "B"]


async def test_a_wake_during_maintenance_is_kept_until_it_is_over_and_a_cancel_stops_it() -> None:
    async with at_work("a") as desk:
        with anyio.fail_after(BOUND):
            begun = anyio.Event()

            async def work(_: object) -> str:
                begun.set()
                await anyio.sleep_forever()
                return "never"

            told: list[object] = []
            async with anyio.create_task_group() as tasks:

                async def maintain() -> None:
                    told.append(await desk.agent.maintain(work))

                tasks.start_soon(maintain)
                await begun.wait()
                assert desk.agent.status is Status.IDLE
                desk.agent.send("A")
                await anyio.wait_all_tasks_blocked()
                assert desk.count("turn/start") == 0
                desk.agent.cancel(keep_inbox=True)
            await desk.agent.wait_idle()
        assert told == [None]
        assert desk.outcomes == ["completed"]


async def test_a_prompt_whose_waiter_is_cancelled_stops_its_turn_as_the_host() -> None:
    reply, gate = hanging(*said_chunks("half", closed=False))
    async with at_work(reply) as desk:
        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(desk.agent.prompt, "A")
                await gate.reached(1)
                tasks.cancel_scope.cancel()
            assert desk.agent.status is Status.IDLE
        assert desk.ends == [("aborted", "host", "the task that awaited the turn was cancelled")]


async def test_who_sends_while_the_agent_is_being_entered_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, session = Gate(), Session()
    begin = session.begin

    async def slowly(provider: str, model: str) -> list[Message]:
        await gate.wait()
        return await begin(provider, model)

    monkeypatch.setattr(session, "begin", slowly)
    async with Runner([], journal=session.journal) as runner:
        agent = AgentLoop(ScriptedModel("a"), runner, session)
        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.__aenter__)
                await gate.reached(1)
                with pytest.raises(AgentClosed):
                    agent.send("A")
                with pytest.raises(AgentClosed):
                    await agent.maintain(lambda _: anyio.sleep_forever())
                gate.open()
            assert (await agent.prompt("B")).text == "a"
            await agent.aclose()


@pytest.mark.virtual_time
async def test_a_log_that_a_disk_does_not_let_go_of_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session.open(tmp_path / "j.db")
    monkeypatch.setattr(SqliteJournal, "flush", lambda _: anyio.sleep_forever())
    try:
        with anyio.fail_after(10 * DURABLE_WAIT), pytest.raises(JournalFailed, match="within 30 s"):
            await session.begin("anthropic", "m")
    finally:
        await session.journal.aclose()
