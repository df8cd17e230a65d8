"""Calls that a turn makes: what tools add behind their results, stops in the middle of a batch, approvals, real processes."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from agent.desk import at_work, last_words

from toolrunner import AbortSignal, Decision, Policy, ToolContext, tool
from toolrunner.agent import NoOpenTurn, TurnApprover
from toolrunner.facts import EffectState
from toolrunner.pipeline.hooks import ask
from toolrunner.policy import ApprovalRequest, Verdict
from toolrunner.records import UserMessage
from toolrunner.results import Code, Outcome
from toolrunner.testing import Gate, ScriptedApprover, call_chunks
from toolrunner.tools.builtin import builtins

pytestmark = pytest.mark.anyio

BOUND = 60


def noting(gates: dict[str, Gate]) -> Any:
    @tool(read_only=True)
    async def note(ctx: ToolContext[None], name: str) -> str:
        """Add a context behind the result, and wait."""
        ctx.follow_up(f"context of {name}")
        if name in gates:
            await gates[name].wait()
        return name

    return note


def calls_of(*names: str) -> list[Any]:
    return [moment for at, name in enumerate(names) for moment in call_chunks("note", {"name": name}, index=at)]


@pytest.mark.case("S13")
async def test_contexts_come_in_model_order_and_all_behind_the_last_result() -> None:
    gates = {"a": Gate()}
    async with at_work(calls_of("a", "b"), "done", tools=[noting(gates)]) as desk:
        desk.when("call/ended", gates["a"].open)  # b's: it ends first
        with anyio.fail_after(BOUND):
            assert (await desk.agent.prompt("A")).text == "done"
        content = desk.model.requests[-1].messages[-1]["content"]
        assert [part["type"] for part in content] == ["tool_result", "tool_result", "text", "text"]
        assert [part["text"] for part in content[2:]] == ["context of a", "context of b"]
        assert [one.source for one in desk.records if isinstance(one, UserMessage)] == ["human", "note", "note"]


@pytest.mark.case("S17", "S21", "S23")
async def test_a_stop_in_a_batch_answers_all_calls_and_parks_the_contexts_of_those_that_ran() -> None:
    gates = {"a": Gate(), "b": Gate()}
    async with at_work(calls_of("a", "b", "c", "d"), "later", "last", tools=[noting(gates)], runner={"max_parallel": 2}) as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            for gate in gates.values():
                await gate.reached(1)
            report = await desk.agent.cancel().settled()
            await desk.agent.wait_idle()
            assert report.turn is not None
            assert [result.started for result in report.turn.results] == [True, True, False, False]
            assert [result.code for result in report.turn.results[2:]] == [Code.ABORTED_BEFORE_DISPATCH] * 2
            assert [message.text for message in desk.agent.queued] == ["context of a", "context of b"]
            assert [record.call_id for record in desk.of("call/recorded")] == [f"call_{number}" for number in range(4)]
            assert len(desk.model.requests) == 1
            await desk.agent.prompt("B")
            await desk.agent.prompt("C")
        content = desk.model.requests[1].messages[-1]["content"]
        assert [part["type"] for part in content[:4]] == ["tool_result"] * 4
        assert [part["text"] for part in content[4:]] == ["[Request interrupted by user]", "context of a", "context of b", "B"]
        assert last_words(desk.model.requests[2].messages) == ["C"]


@pytest.mark.case("S20")
async def test_a_body_that_stops_its_own_agent_loses_what_was_injected_before_and_parks_what_comes_after() -> None:
    @tool
    async def stop(ctx: ToolContext[None]) -> str:
        """Stop the agent."""
        desk.agent.inject("before")
        assert [message.text for message in desk.agent.cancel().dropped] == ["before"]
        ctx.follow_up("after")
        return "stopped"

    async with at_work(call_chunks("stop", {}), "later", tools=[stop]) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
            assert result.outcome == "aborted"
            assert [message.text for message in desk.agent.queued] == ["after"]
            await desk.agent.prompt("B")
        assert desk.said == ["A", "after", "B"]


@pytest.mark.case("S22")
async def test_an_agent_that_closes_during_a_call_parks_its_context_and_opens_no_second_turn() -> None:
    gates = {"a": Gate()}
    async with at_work(calls_of("a"), tools=[noting(gates)]) as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await gates["a"].reached(1)
            await desk.agent.aclose()
        assert [message.text for message in desk.agent.queued] == ["context of a"]
        assert desk.count("turn/start") == 1
        assert desk.ends == [("aborted", "shutdown", "the agent was closed")]


async def test_who_denies_and_stops_stops_the_turn_too() -> None:
    async def look(*_: object) -> Any:
        return ask("May it?")

    approver = ScriptedApprover([Decision.stop("no more of this")])
    async with at_work(calls_of("a", "b"), "never", tools=[noting({})], runner={"approver": approver}) as desk:
        desk.runner.pre_execute(look)
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
        assert result.outcome == "aborted"
        assert desk.ends[0][1] == "approver"
        assert len(desk.model.requests) == 1
        assert not any(one.started for one in result.results)


class Person:
    def __init__(self) -> None:
        self.asked: list[ApprovalRequest] = []

    async def __call__(self, request: ApprovalRequest, signal: AbortSignal) -> Decision | None:
        self.asked.append(request)
        return Decision.allow()


@pytest.mark.case("A5")
async def test_without_an_agent_an_approval_is_a_denial_and_nobody_is_asked() -> None:
    person = Person()
    approver = TurnApprover(person)
    runner = {"approver": approver, "policy": Policy((), default=Verdict.ASK)}
    async with at_work(calls_of("a"), "done", tools=[noting({})], runner=runner) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
            assert [one.outcome for one in result.results] == [Outcome.DENIED]
            assert person.asked == []
            approver.bind(desk.agent)
            desk.model.add(calls_of("b"), "done")
            result = await desk.agent.prompt("B")
        assert [one.outcome for one in result.results] == [Outcome.SUCCEEDED]
        assert len(person.asked) == 1


@pytest.mark.case("A7")
async def test_outside_a_turn_nobody_is_asked() -> None:
    person = Person()
    approver = TurnApprover(person)
    async with at_work(tools=[noting({})], runner={"approver": approver, "policy": Policy((), default=Verdict.ASK)}) as desk:
        approver.bind(desk.agent)
        with anyio.fail_after(BOUND):
            with pytest.raises(NoOpenTurn):
                await approver.decide(ApprovalRequest(run_id="r", tool="note", arguments={}, digest="d"), AbortSignal())
            result = await desk.runner.run("note", {"name": "a"})
        assert (result.outcome, result.started, person.asked) == (Outcome.DENIED, False, [])


@pytest.mark.case("E20")
@pytest.mark.processes
async def test_of_two_shell_commands_the_running_one_is_stopped_and_the_second_never_starts(tmp_path: Path) -> None:
    first = "echo $$ > started.txt; while :; do sleep 0.05; done"
    calls = [
        *call_chunks("shell", {"command": first}),
        *call_chunks("shell", {"command": "echo no > skipped.txt"}, index=1),
    ]
    async with at_work(calls, "later", tools=[builtins(tmp_path).only("shell")]) as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            started = tmp_path / "started.txt"
            while not started.exists() or not started.read_text().strip():  # noqa: ASYNC110 - a process of another program writes it
                await anyio.sleep(0.01)
            pid = int(started.read_text())
            report = await desk.agent.cancel().settled()
            assert report.turn is not None
            one, two = report.turn.results
            await desk.agent.prompt("B")
        assert (one.outcome, one.started) == (Outcome.ABORTED, True)
        assert one.effects.state is not EffectState.NONE
        assert one.files_changed is not None
        assert any(path.endswith("started.txt") for path in one.files_changed)
        assert (two.code, two.started, two.effects.state) == (Code.ABORTED_BEFORE_DISPATCH, False, EffectState.NONE)
        assert not (tmp_path / "skipped.txt").exists()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert [(one.name, one.check) for one in report.outside] == [("shell", True)]
        told = desk.model.requests[-1].messages[-1]["content"]
        assert "started.txt" in str(told[0])
        assert "not" in str(told[1])
        assert told[2]["text"] == "[Request interrupted by user]"
