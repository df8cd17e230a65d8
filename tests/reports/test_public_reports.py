"""Public bug reports whose right outcome is a matter of what the result says, shown through the runner with real bodies.

(What is a matter of signals, pipes and descendants is shown in tests/process, what is a matter of the terminal in tests/cli.)
"""

import subprocess
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from liveness import Lifeline, survivors, unique_duration
from stillness import all_blocked

from toolrunner import AbortController, ApprovalRequest, Decision, Policy, Runner, ToolCall, ToolResult, shell, tool
from toolrunner.facts import EffectState, Evidence
from toolrunner.process import SpawnError, SpawnErrorKind
from toolrunner.results import Code, Ended, Outcome, Retry, plain_text
from toolrunner.testing import FakeCommand, FakeSupervisor, Recorder

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

BOUND = 60.0
"""Seconds for what takes milliseconds, or the grace of a command: every core may be busy."""


def text_of(result: ToolResult) -> str:
    return plain_text(result.content_for_model())


async def stop_when(ready: Any, stop: AbortController) -> None:
    await ready
    stop.abort()


@pytest.mark.case("P25")
@pytest.mark.virtual_time
async def test_a_time_limit_fires_although_another_call_is_in_flight() -> None:
    release = anyio.Event()

    @tool(parallel_safe=True)
    async def waits() -> str:
        await release.wait()
        return "done"

    @tool(parallel_safe=True, timeout=0.05)
    async def hangs() -> str:
        await anyio.sleep_forever()
        raise AssertionError

    async with Runner([waits, hangs]) as runner:
        batch = runner.start_batch([ToolCall("waits"), ToolCall("hangs")])
        with anyio.fail_after(BOUND):
            async for record in batch.events():
                if record.type == "call/ended" and record.run_id == batch.run_ids[1]:
                    break
            release.set()
            first, second = await batch
    assert (first.outcome, first.value) == (Outcome.SUCCEEDED, "done")
    assert (second.outcome, second.code, second.ended) == (Outcome.TIMED_OUT, Code.TIMED_OUT, Ended.STOPPED)


@pytest.mark.case("P40")
@pytest.mark.parametrize("how", ["ignores the kill", "keeper lost", "refused", "exec fails"])
async def test_every_call_gets_its_one_result_although_its_command_could_not_be_ended_as_hoped(how: str) -> None:
    error = SpawnError(SpawnErrorKind.SETUP, "no more descriptors")
    commands = {
        "ignores the kill": FakeCommand(exit_code=None, ignores_term=True),
        "keeper lost": FakeCommand(exit_code=None),
        "refused": FakeCommand(refused=error),
        "exec fails": FakeCommand(spawn_error=error),
    }
    fake = FakeSupervisor(commands[how])
    stop = AbortController()
    seen = Recorder()
    async with Runner([shell], supervisor=fake.made, kill_after=0.05) as runner:
        runner.on_record(seen)
        batch = runner.start_batch([ToolCall("shell", {"command": "x"}, call_id=str(n)) for n in range(3)], signal=stop.signal)
        with anyio.fail_after(BOUND):
            await all_blocked()
            if how == "keeper lost":
                (await fake.prepared()).lose_keeper()
            stop.abort()
            results = await batch
    assert [result.call_id for result in results] == ["0", "1", "2"]
    for result in results:
        seen.assert_once("call/settled", result.run_id)
        assert result.started == (result.effects.evidence is not Evidence.NOT_STARTED)


@pytest.mark.case("P57")
async def test_a_commit_whose_hook_was_stopped_is_not_told_as_not_written(tmp_path: Path) -> None:
    duration = unique_duration()
    stop = AbortController()
    with Lifeline(tmp_path) as line:
        script = (
            "git init -q . && git config user.email a@example.org && git config user.name a && "
            f"printf '#!/bin/sh\\n{line.sh}\\nsleep {duration}\\n' >.git/hooks/post-commit && "
            "chmod +x .git/hooks/post-commit && git commit -q --allow-empty -m x"
        )
        work = tmp_path / "work"
        work.mkdir()
        async with Runner([shell]) as runner, anyio.create_task_group() as tasks:
            tasks.start_soon(stop_when, line.opened(), stop)
            with anyio.fail_after(BOUND):
                result = await runner.run("shell", {"command": script, "cwd": str(work)}, signal=stop.signal)
        assert line.is_gone()
    assert (result.outcome, result.started, result.ended) == (Outcome.ABORTED, True, Ended.STOPPED)
    assert result.effects.state is EffectState.UNKNOWN
    assert result.retry is Retry.CHECK_FIRST
    assert "may have taken effect" in text_of(result)
    counted = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=work, capture_output=True, text=True, check=True)
    assert counted.stdout.strip() == "1"
    assert await survivors(duration) == []


@pytest.mark.case("P58")
async def test_a_denial_and_a_stop_of_a_running_call_are_told_with_different_words() -> None:
    bodies: list[str] = []
    started = anyio.Event()
    stop = AbortController()

    @tool
    async def writes(what: str) -> None:
        bodies.append(what)
        started.set()
        await anyio.sleep_forever()

    async with Runner([writes], policy=Policy.of(allow=["writes"])) as runner, anyio.create_task_group() as tasks:
        denied = Runner([writes], policy=Policy.of(deny=["writes"]))
        async with denied:
            before = await denied.run("writes", {"what": "never"})
        tasks.start_soon(stop_when, started.wait(), stop)
        with anyio.fail_after(BOUND):
            after = await runner.run("writes", {"what": "begun"}, signal=stop.signal)
    assert bodies == ["begun"]
    assert (before.code, before.started, before.effects.state) == (Code.DENIED, False, EffectState.NONE)
    assert (after.code, after.started, after.effects.state) == (Code.ABORTED, True, EffectState.UNKNOWN)
    assert "not started" in text_of(before)
    assert "not started" not in text_of(after)


@pytest.mark.case("P62")
async def test_a_call_stopped_while_it_waits_never_starts_later() -> None:
    bodies: list[str] = []
    asked = anyio.Event()
    began = anyio.Event()
    release = anyio.Event()
    stop = AbortController()

    @tool(max_concurrency=1, parallel_safe=True)
    async def sends(to: str) -> None:
        bodies.append(to)
        began.set()
        await release.wait()

    class LateApprover:
        async def decide(self, request: ApprovalRequest, signal: object) -> Decision | None:
            asked.set()
            return None

    async with Runner([sends], policy=Policy.of(ask=["sends"]), approver=LateApprover()) as runner:
        batch = runner.start_batch([ToolCall("sends", {"to": "a"})], signal=stop.signal)
        with anyio.fail_after(BOUND):
            await asked.wait()
            (request,) = runner.pending_approvals
            stop.abort()
            (unapproved,) = await batch
        assert not runner.decide(request.approval_id, Decision.allow())
    async with Runner([sends]) as runner:
        queued_stop = AbortController()
        running = runner.start_batch([ToolCall("sends", {"to": "b"})])
        with anyio.fail_after(BOUND):
            await began.wait()
            queued = runner.start_batch([ToolCall("sends", {"to": "c"})], signal=queued_stop.signal)
            await all_blocked()
            queued_stop.abort()
            (waited,) = await queued
            release.set()
            await running
    assert bodies == ["b"]
    for result in (unapproved, waited):
        assert (result.code, result.started) == (Code.ABORTED_BEFORE_DISPATCH, False)


@pytest.mark.case("P72")
async def test_a_sync_tool_that_cannot_be_stopped_is_waited_for_and_told_as_finished(tmp_path: Path) -> None:
    entered, go = threading.Event(), threading.Event()
    stop = AbortController()

    @tool
    def slow_write() -> str:
        entered.set()
        assert go.wait(BOUND)
        (tmp_path / "m").write_text("x")
        return "written"

    async with Runner([slow_write]) as runner:
        batch = runner.start_batch([ToolCall("slow_write")], signal=stop.signal)
        with anyio.fail_after(BOUND):
            assert await anyio.to_thread.run_sync(entered.wait, BOUND)
            stop.abort()
            async for record in batch.events():
                if record.type == "still_running":
                    assert not (tmp_path / "m").exists()
                    go.set()
            (result,) = await batch
    assert (tmp_path / "m").read_text() == "x"
    assert (result.outcome, result.code, result.ended) == (Outcome.ABORTED, Code.ABORTED, Ended.RETURNED)
    assert (result.value, result.effects.state) == ("written", EffectState.COMPLETED)
    assert "finished before it could be stopped" in text_of(result)
    assert not result.is_error
