"""Grants at the moment of action: one that has expired, or that was given for something else, is asked for once more."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pipeline.asking import ASK, WRITE, Approver, entered, write
from pipeline.bench import (
    DENIED,
    SUCCEEDED,
    check_never_started,
    check_stopped_early,
    facts,
    only,
    open_runner,
    stop_of,
    types_of,
)
from stillness import all_blocked

from toolrunner import AbortController, Command, Decision, MemoryJournal, Policy, Runner, ToolCall, command_tool, tool
from toolrunner.facts import StopPhase
from toolrunner.results import Code, Outcome
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio


class Clock:
    """Stands where the test puts it; `on_read` runs at each reading."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.on_read: Callable[[], object] = lambda: None

    def __call__(self) -> float:
        self.on_read()
        return self.now


def set_clock(runner: Runner) -> Clock:
    clock = Clock()
    assert runner._services is not None
    runner._services.grants._clock = clock
    return clock


async def wait_in_line(runner: Runner, first: Gate) -> Any:
    """A batch whose second call, approved, waits for the lock of its first."""
    batch = runner.start_batch([ToolCall("locked", {"path": "1"}), ToolCall("locked", {"path": "2"})])
    await first.reached()
    await all_blocked()
    return batch


def locked_tool(gate: Gate) -> Any:
    @tool(resources=lambda arguments: ["the file"], parallel_safe=True)
    async def locked(path: str) -> str:
        """Write under a lock."""
        entered.append({"path": path})
        if path == "1":
            await gate.wait()
        return path

    return locked


@pytest.mark.parametrize("answers", ["allow", "deny", "slow again", "other arguments"])
async def test_a_grant_that_expired_in_the_queue_is_asked_for_once_more(answers: str) -> None:
    gate = Gate()
    again: dict[str, Any] = {
        "allow": Decision.allow(),
        "deny": Decision.deny("too late"),
        "slow again": Decision.allow(),
        "other arguments": Decision.allow(arguments={"path": "3"}),
    }
    approver = Approver(Decision.allow(), Decision.allow(), again[answers])
    async with open_runner([locked_tool(gate)], policy=Policy.of(ask=["locked"]), approver=approver) as runner:
        clock = set_clock(runner)
        batch = await wait_in_line(runner, gate)
        clock.now += 10_000
        if answers == "slow again":
            clock.on_read = lambda: setattr(clock, "now", clock.now + 10_000)
        gate.open()
        first, second = await batch.results()
    assert facts(first) == SUCCEEDED
    assert len(approver.asked) == 3
    expired = (Outcome.DENIED, Code.GRANT_EXPIRED, False, None)
    match answers:
        case "allow":
            assert facts(second) == SUCCEEDED
            assert entered == [{"path": "1"}, {"path": "2"}]
        case "deny":
            check_never_started(second, DENIED)
        case _:
            check_never_started(second, expired)
            assert second.retry == "safe"
    assert answers == "allow" or entered == [{"path": "1"}]


async def test_an_abort_while_the_expired_grant_is_asked_for_again_starts_nothing() -> None:
    gate, question = Gate(), Gate()
    approver = Approver(Decision.allow())
    stop = AbortController()
    async with open_runner([locked_tool(gate)], policy=Policy.of(ask=["locked"]), approver=approver) as runner:
        clock = set_clock(runner)
        batch = runner.start_batch([ToolCall("locked", {"path": "1"})])
        await gate.reached()
        second = runner.start_batch([ToolCall("locked", {"path": "2"})], signal=stop.signal)
        await all_blocked()
        clock.now += 10_000
        approver._gate = question
        gate.open()
        await question.reached()
        stop.abort("enough")
        check_stopped_early(only(await second.results()))
        question.open()
        assert facts(only(await batch.results())) == SUCCEEDED
        assert facts(await runner.run("locked", {"path": "3"})) == SUCCEEDED
    assert entered == [{"path": "1"}, {"path": "3"}]


@pytest.mark.processes
async def test_a_program_put_before_the_approved_one_is_not_what_was_approved(tmp_path: Path) -> None:
    """The search path is read again at the moment of action: the grant covers the program that it found, not its name."""
    early, late = tmp_path / "early", tmp_path / "late"
    for folder in (early, late):
        folder.mkdir()
    put_program(late / "prog", "echo approved")

    @command_tool(parallel_safe=True, resources=lambda arguments: ["the file"])
    def prog() -> Command:
        """Run prog."""
        return Command(["prog"], env={"PATH": f"{early}:{late}:/usr/bin:/bin"})

    gate = Gate()
    approver = Approver(Decision.allow(), Decision.allow(), Decision.deny("not that one"))
    async with open_runner([locked_tool(gate), prog], policy=Policy.of(ask=["*"]), approver=approver) as runner:
        batch = runner.start_batch([ToolCall("locked", {"path": "1"}), ToolCall("prog")])
        await gate.reached()
        await all_blocked()
        assert len(approver.asked) == 2
        put_program(early / "prog", f"touch {tmp_path}/swapped")
        gate.open()
        _, swapped = await batch.results()
    check_never_started(swapped, DENIED)
    assert [request.tool for request in approver.asked] == ["locked", "prog", "prog"]
    assert approver.asked[1].digest != approver.asked[2].digest
    assert not (tmp_path / "swapped").exists()


def put_program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


async def test_an_expired_session_grant_is_none() -> None:
    approver = Approver(Decision.allow("session"))
    async with open_runner([write], policy=ASK, approver=approver) as runner:
        clock = set_clock(runner)
        await runner.run(WRITE)
        await runner.run(WRITE)
        assert len(approver.asked) == 1
        clock.now += 100_000
        await runner.run(WRITE)
        assert len(approver.asked) == 2


async def test_a_stop_while_a_thread_passes_its_gate_is_told_to_the_body() -> None:
    """Reading the clock of its grant, the worker thread stands between the check of the signal and the first step."""
    stop = AbortController()
    seen: list[bool] = []

    @tool
    def work() -> str:
        """Run in a thread."""
        gate.wait_blocking()
        return "done"

    journal = MemoryJournal()
    async with open_runner(
        [work], policy=Policy.of(ask=["work"]), approver=Approver(Decision.allow()), journal=journal
    ) as runner:
        gate, heard = Gate(), Gate()
        clock = set_clock(runner)
        services = runner._services
        assert services is not None

        def pass_the_gate() -> None:
            if threading.get_ident() != services.loop_thread:
                stop.abort("enough")
                services.post(heard.open)  # after the loop has heard of the abort
                heard.wait_blocking()
                seen.append(True)

        clock.on_read = pass_the_gate
        batch = runner.start_batch([ToolCall("work")], signal=stop.signal)
        await gate.reached()
        await all_blocked()
        gate.open()
        result = only(await batch.results())
    assert seen == [True]
    assert facts(result) == (Outcome.ABORTED, Code.ABORTED, True, "returned")
    assert stop_of(result) == ("caller", "enough", StopPhase.RUNNING)
    assert result.stop is not None
    assert result.stop.delivered_at is not None
    assert "call/stop_delivered" in types_of(journal)
