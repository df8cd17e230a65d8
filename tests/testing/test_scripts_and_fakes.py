"""Scripted tools and approvers do what their script says, fakes what a process would, and the recorder notices a wrong order."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from stillness import all_blocked

from toolrunner import AbortController, Command, Decision, Policy, Runner, ToolResult, command_tool
from toolrunner.facts import EffectState
from toolrunner.policy import Rule, Verdict
from toolrunner.process import LaunchPlan, SpawnError
from toolrunner.process.ending import SpawnErrorKind
from toolrunner.results import Code, Ended, Outcome
from toolrunner.testing import FakeCommand, FakeProcess, FakeSupervisor, Gate, Recorder, Script, ScriptedApprover, ScriptedTool

pytestmark = pytest.mark.anyio


async def stopped_at_its_gate(one: ScriptedTool, gate: Gate, *, open_after: bool = False) -> ToolResult:
    caller = AbortController()
    results: list[ToolResult] = []
    async with Runner([one.tool]) as runner:

        async def run() -> None:
            results.append(await runner.run(one.name, signal=caller.signal))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                await gate.reached()
                caller.abort("stop")
                if open_after:
                    gate.open()
    return results[0]


async def test_a_cooperative_body_ends_at_its_gate_and_knows_that_it_was_told() -> None:
    gate = Gate()
    one = ScriptedTool("one", Script(gate=gate, changes=["a"]))
    result = await stopped_at_its_gate(one, gate)
    assert result.ended is Ended.STOPPED
    assert (one.entries[0].told, one.entries[0].made, one.entries[0].running, one.entries[0].finished) == (True, [], False, False)


@pytest.mark.parametrize("sync", [False, True])
async def test_a_stubborn_body_goes_on_to_its_end(sync: bool) -> None:
    gate = Gate()
    one = ScriptedTool("one", Script(gate=gate, changes=["a"], stubborn=True, sync=sync))
    result = await stopped_at_its_gate(one, gate, open_after=True)
    assert (result.ended, result.outcome, result.value) == (Ended.RETURNED, Outcome.ABORTED, "done")
    assert (one.entries[0].made, one.entries[0].finished) == (["a"], True)


async def test_a_sync_body_that_looks_at_its_signal_returns_early() -> None:
    gate = Gate()
    one = ScriptedTool("one", Script(gate=gate, changes=["a"], sync=True))
    result = await stopped_at_its_gate(one, gate, open_after=True)
    assert (result.ended, result.value) == (Ended.RETURNED, None)
    assert (one.entries[0].made, one.entries[0].told) == ([], True)


async def test_a_body_fails_as_often_as_its_script_says() -> None:
    one = ScriptedTool("one", Script(error=OSError("no"), failures=1), retry=1, read_only=True)
    async with Runner([one.tool]) as runner:
        first = await runner.run("one")
    assert (first.outcome, first.code) == (Outcome.FAILED, Code.TOOL_ERROR)


async def test_what_a_body_declares_is_recorded_and_what_it_makes_in_silence_is_only_its_own_truth() -> None:
    says = ScriptedTool("says", Script(changes=["a"]))
    silent = ScriptedTool("silent", Script(changes=["b"], declares=False))
    async with Runner([says.tool, silent.tool]) as runner:
        told, untold = await runner.run("says"), await runner.run("silent")
    assert [(one.target, one.receipt) for one in told.effects.records] == [("a", "made a")]
    assert untold.effects.records == ()
    assert silent.entries_of(untold.run_id)[0].made == ["b"]


async def test_an_approver_answers_in_turn_and_then_allows() -> None:
    one = ScriptedTool("one")
    approver = ScriptedApprover([Decision.deny("not yet"), OSError("gone")])
    async with Runner([one.tool], policy=Policy([Rule(Verdict.ASK)]), approver=approver) as runner:
        outcomes = [(await runner.run("one")).outcome for _ in range(3)]
    assert outcomes == [Outcome.DENIED, Outcome.DENIED, Outcome.SUCCEEDED]
    assert [request.tool for request in approver.asked] == ["one"] * 3


async def test_a_late_answer_of_an_approver_that_ignores_its_cancel_starts_nothing() -> None:
    gate = Gate()
    one = ScriptedTool("one")
    approver = ScriptedApprover(gate=gate, ignores_cancel=True)
    caller = AbortController()
    async with Runner([one.tool], policy=Policy([Rule(Verdict.ASK)]), approver=approver) as runner:
        batch = runner.start_batch([], signal=caller.signal)
        results: list[ToolResult] = []

        async def run() -> None:
            results.append(await runner.run("one", signal=caller.signal))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                await gate.reached()
                caller.abort("stop")
            gate.open()
            await batch
    assert results[0].code is Code.ABORTED_BEFORE_DISPATCH
    assert one.entries == []


@command_tool
def work(word: str = "") -> Command:
    """Run a process."""
    return Command(["work", word])


async def run_fake(
    script: FakeCommand, act: Callable[[FakeProcess, AbortController], object] | None = None, **settings: Any
) -> tuple[ToolResult, FakeSupervisor]:
    fake = FakeSupervisor(script)
    caller = AbortController()
    results: list[ToolResult] = []
    async with Runner([work], supervisor=fake.made, **settings) as runner:

        async def run() -> None:
            results.append(await runner.run("work", {"word": "hard"}, signal=caller.signal))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                if act is not None:
                    process = await fake.prepared()
                    await all_blocked()
                    act(process, caller)
    return results[0], fake


async def test_a_fake_process_exits_by_itself() -> None:
    result, fake = await run_fake(FakeCommand(stdout="out"))
    assert result.outcome is Outcome.SUCCEEDED
    assert result.process is not None
    assert (result.process.exit_code, result.process.stdout) == (0, "out")
    assert fake.processes[0].plan.argv == ("work", "hard")
    assert fake.closed


async def test_a_fake_process_is_ended_by_the_test() -> None:
    result, _ = await run_fake(FakeCommand(exit_code=None), lambda process, _: process.exit(3))
    assert (result.outcome, result.code) == (Outcome.FAILED, Code.EXIT_STATUS)
    result, _ = await run_fake(FakeCommand(exit_code=None), lambda process, _: process.die("SIGSEGV"))
    assert result.code is Code.KILLED_BY_SIGNAL
    result, _ = await run_fake(FakeCommand(exit_code=None), lambda process, _: process.lose_keeper())
    assert (result.code, result.still_running) == (Code.KEEPER_LOST, None)


@pytest.mark.parametrize("ignores", [False, True])
async def test_a_fake_process_goes_down_the_ladder(ignores: bool) -> None:
    script = FakeCommand(exit_code=None, ignores_term=ignores)
    result, _ = await run_fake(script, lambda _, caller: caller.abort("stop"), kill_after=0.01)
    assert (result.outcome, result.ended) == (Outcome.ABORTED, Ended.STOPPED)
    assert result.stop is not None
    assert result.stop.signals == (("SIGTERM", "SIGKILL") if ignores else ("SIGTERM",))
    assert result.stop.escalated is ignores


async def test_a_fake_process_is_refused_or_cannot_be_run() -> None:
    refused, fake = await run_fake(FakeCommand(refused=SpawnError(SpawnErrorKind.SETUP, "no room")))
    assert (refused.outcome, refused.started, fake.processes) == (Outcome.REJECTED, False, [])
    unknown, fake = await run_fake(FakeCommand(spawn_error=SpawnError(SpawnErrorKind.NOT_FOUND, "no such command")))
    assert (unknown.outcome, unknown.started, fake.processes[0].released) == (Outcome.REJECTED, False, False)
    assert unknown.effects.state is EffectState.NONE


async def test_a_fake_process_runs_over_its_time() -> None:
    plan = LaunchPlan(("work",), timeout=0.001)
    fake = FakeSupervisor(FakeCommand(exit_code=None))
    process = await fake.prepare(plan)
    process.go()
    with anyio.fail_after(60):
        end = await process.wait()
    assert str(end.cause) == "timed_out"
    await fake.aclose()


async def test_a_recorder_notices_what_is_missing_twice_or_out_of_order() -> None:
    recorder = Recorder()
    one = ScriptedTool("one", Script(changes=["a"]))
    async with Runner([one.tool]) as runner:
        runner.on_record(recorder)
        result = await runner.run("one")
        await runner.run("one")
    life = ("call/recorded", "call/dispatched", "effect/planned", "effect/applied", "call/ended")
    recorder.assert_in_order(*life, run_id=result.run_id)
    recorder.assert_once("call/settled", result.run_id)
    assert recorder.types(result.run_id)[-1] == "call/settled"
    assert len(list(recorder)) == len(recorder.records)
    with pytest.raises(AssertionError, match="not in its place"):
        recorder.assert_in_order("call/ended", "call/dispatched", run_id=result.run_id)
    with pytest.raises(AssertionError, match="got 0"):
        recorder.assert_once("call/asked", result.run_id)


async def test_what_a_watch_raises_is_kept_and_the_call_goes_on() -> None:
    def watch(record: object) -> None:
        raise OSError("in the watch")

    recorder = Recorder(watch)
    one = ScriptedTool("one")
    async with Runner([one.tool]) as runner:
        runner.on_record(recorder)
        assert (await runner.run("one")).outcome is Outcome.SUCCEEDED
    assert len(recorder.errors) == len(recorder.records) > 0
