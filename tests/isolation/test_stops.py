"""Bodies in worker processes that are stopped, and their effects: durable in the host before the act, wherever the act is."""

import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from isolation import workers
from isolation.opening import BOUND, opened
from stillness import all_blocked

from toolrunner import AbortController, MemoryJournal, Runner, ToolCall, ToolResult
from toolrunner.facts import EffectStage, EffectState, Evidence, Source, StopPhase
from toolrunner.process.kept import KeptProcess
from toolrunner.records import EffectPlanned, Record
from toolrunner.results import Code, Ended, Outcome

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

LIMITS = (1.0, 4.0, 16.0)
"""Seconds a body is given, until one was enough for its worker to start: a time limit counts from the release."""


async def exists(path: Path) -> None:
    """Wait for a file that a worker makes: what another process does can only be polled for."""
    while not path.exists():  # noqa: ASYNC110
        await anyio.sleep(0.005)


async def stopped(
    tool: Any, tmp_path: Path, arguments: dict[str, Any] | None = None, *, text: str = "seen enough", **settings: Any
) -> ToolResult:
    """Run a tool, and abort it once it is ready."""
    controller, results = AbortController(), list[ToolResult]()
    ready = tmp_path / "ready"
    async with opened(tool, **settings) as runner, anyio.create_task_group() as tasks:

        async def run() -> None:
            call = {"ready": str(ready), **(arguments or {})}
            results.append(await runner.run(tool.name, call, signal=controller.signal))

        tasks.start_soon(run)
        await exists(ready)
        controller.abort(text)
    return results[0]


async def test_an_async_body_is_cancelled_and_cleans_up(tmp_path: Path) -> None:
    result = await stopped(workers.tidy, tmp_path, {"done": str(tmp_path / "done")})
    assert (result.outcome, result.code, result.ended) == (Outcome.ABORTED, Code.ABORTED, Ended.STOPPED)
    assert (tmp_path / "done").exists()
    assert result.stop is not None
    assert (result.stop.source, result.stop.reason, result.stop.phase) == (Source.CALLER, "seen enough", StopPhase.RUNNING)
    assert (result.stop.signals, result.stop.escalated) == (("SIGTERM",), False)
    assert result.effects.state is EffectState.UNKNOWN
    assert result.still_running == ()


@pytest.mark.parametrize("body, said", [(workers.watchful, "caller: seen enough"), (workers.never_yields, "saw it")])
async def test_the_signal_flips_in_the_worker_with_its_reason_and_what_is_returned_then_is_kept(
    body: Any, said: str, tmp_path: Path
) -> None:
    result = await stopped(body, tmp_path)
    assert (result.outcome, result.code, result.ended) == (Outcome.ABORTED, Code.ABORTED, Ended.RETURNED)
    assert result.value == said
    # It saw the abort before it returned: nobody can assume that it did all.
    assert (result.effects.state, result.effects.evidence) == (EffectState.UNKNOWN, None)


@pytest.mark.case("E14")
async def test_a_body_that_ignores_everything_is_killed_after_the_grace_with_all_it_started(tmp_path: Path) -> None:
    result = await stopped(workers.stubborn, tmp_path)
    assert (result.outcome, result.code, result.ended) == (Outcome.ABORTED, Code.ABORTED, Ended.STOPPED)
    assert result.stop is not None
    assert result.stop.signals == ("SIGTERM", "SIGKILL")
    assert result.stop.escalated
    assert result.process is not None
    assert result.process.signal == "SIGKILL"
    assert result.stop.delivered_at is not None
    assert result.stop.ended_at is not None
    assert 0.3 <= (result.stop.ended_at - result.stop.delivered_at).total_seconds() < 10
    assert result.still_running == ()
    assert (result.effects.state, result.effects.evidence) == (EffectState.UNKNOWN, None)


@pytest.mark.parametrize("held_up", [0.0, 0.3], ids=["host in time", "host held up after the release"])
async def test_a_time_limit_is_the_keepers_and_the_body_is_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_up: float
) -> None:
    """The worker knows the limit from its host, and the signal comes from its keeper, whose clock runs from the release."""
    go = KeptProcess.go

    def slow_go(prepared: KeptProcess) -> None:
        go(prepared)
        time.sleep(held_up)

    monkeypatch.setattr(KeptProcess, "go", slow_go)
    ready, limits = tmp_path / "ready", iter(LIMITS)
    async with opened(workers.watchful) as runner:
        result = await runner.run(ToolCall("watchful", {"ready": str(ready)}, timeout=next(limits)))
        while not ready.exists():
            result = await runner.run(ToolCall("watchful", {"ready": str(ready)}, timeout=next(limits)))
    assert (result.outcome, result.code, result.ended) == (Outcome.TIMED_OUT, Code.TIMED_OUT, Ended.RETURNED)
    assert result.value == "timeout: the time limit is over"
    assert result.stop is not None
    assert result.stop.source == Source.TIMEOUT


async def test_a_time_limit_ends_a_body_that_ignores_it(tmp_path: Path) -> None:
    async with opened(workers.stubborn) as runner:
        result = await runner.run(ToolCall("stubborn", {"ready": str(tmp_path / "ready")}, timeout=0.2))
    assert (result.outcome, result.code, result.ended) == (Outcome.TIMED_OUT, Code.TIMED_OUT, Ended.STOPPED)
    assert result.still_running == ()


async def test_an_effect_that_the_kill_cut_in_half_is_unknown_and_the_one_before_it_is_known(tmp_path: Path) -> None:
    result = await stopped(workers.stubborn_effect, tmp_path)
    assert result.outcome is Outcome.ABORTED
    assert [(one.target, one.stage) for one in result.effects.records] == [
        ("first", EffectStage.APPLIED),
        ("second", EffectStage.UNKNOWN),
    ]
    assert result.effects.state is EffectState.UNKNOWN
    assert result.effects.records[1].error == "the worker ended before it told how the act ended"


async def test_an_error_after_our_signal_is_kept_and_the_stop_is_the_cause(tmp_path: Path) -> None:
    result = await stopped(workers.fails_when_stopped, tmp_path)
    assert (result.outcome, result.code, result.ended) == (Outcome.ABORTED, Code.ABORTED, Ended.STOPPED)
    assert result.error is not None
    assert (result.error.kind, result.error.message) == ("command", "my command was killed")
    assert result.is_error


async def test_a_reason_that_cannot_be_sent_does_not_keep_the_stop_away(tmp_path: Path) -> None:
    result = await stopped(workers.watchful, tmp_path, text="bad \udcff " * 10_000)
    assert (result.outcome, result.ended) == (Outcome.ABORTED, Ended.RETURNED)
    assert isinstance(result.value, str)
    assert result.value.startswith("caller: bad \\udcff bad")


async def test_a_sigterm_of_somebody_elses_is_no_stop_of_ours(tmp_path: Path) -> None:
    pid, results = list[int](), list[ToolResult]()

    def observe(record: Record) -> None:
        if record.type == "call/dispatched" and record.process is not None:
            pid.append(record.process.pid)

    ready = tmp_path / "ready"
    async with opened(workers.tidy) as runner, anyio.create_task_group() as tasks:

        async def run() -> None:
            call = ToolCall("tidy", {"ready": str(ready), "done": str(tmp_path / "done")})
            results.extend(await runner.run_batch([call], on_event=observe))

        tasks.start_soon(run)
        await exists(ready)
        os.kill(pid[0], 15)
    (result,) = results
    assert (result.outcome, result.code, result.stop) == (Outcome.FAILED, Code.TOOL_ERROR, None)
    assert (tmp_path / "done").exists()
    assert result.error is not None
    assert "SIGTERM that toolrunner did not send" in result.error.message


async def test_a_call_that_was_aborted_before_its_moment_never_had_a_worker(tmp_path: Path) -> None:
    controller = AbortController()
    async with opened(workers.hello) as runner:

        def abort(record: Record) -> None:
            if record.type == "call/dispatched":
                controller.abort("at the gate")

        calls = [ToolCall("hello", {"name": "you"})]
        (result,) = await runner.run_batch(calls, signal=controller.signal, on_event=abort)
    assert (result.outcome, result.code, result.started) == (Outcome.ABORTED, Code.ABORTED_BEFORE_DISPATCH, False)
    assert (result.process, result.effects.state, result.effects.evidence) == (None, EffectState.NONE, Evidence.NOT_STARTED)


async def test_a_runner_that_closes_ends_its_workers(tmp_path: Path) -> None:
    results = list[ToolResult]()
    ready = tmp_path / "ready"
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks, Runner([workers.stubborn]) as runner:

            async def run() -> None:
                results.append(await runner.run("stubborn", {"ready": str(ready)}))

            tasks.start_soon(run)
            await exists(ready)
            await runner.aclose(limit=0)
    (result,) = results
    assert result.outcome is Outcome.ABORTED
    # A process is waited for whatever the limit: it always ends.
    assert (result.ended, result.still_running) == (Ended.STOPPED, ())


class Slow:
    """Plans become durable when the test says so."""

    def __init__(self) -> None:
        self.inner = MemoryJournal()
        self.error: str | None = None
        self.planned, self.durable = anyio.Event(), anyio.Event()
        self.failing = False

    def append(self, *records: Record) -> Awaitable[None] | None:
        self.inner.append(*records)
        return self._wait() if any(isinstance(record, EffectPlanned) for record in records) else None

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def _wait(self) -> None:
        self.planned.set()
        await self.durable.wait()
        if self.failing:
            raise OSError("no space left")


async def written(path: Path, act: Callable[[Slow, AbortController], Any]) -> ToolResult:
    controller, results, journal = AbortController(), list[ToolResult](), Slow()
    async with opened(workers.writes, journal=journal) as runner, anyio.create_task_group() as tasks:

        async def run() -> None:
            results.append(await runner.run("writes", {"path": str(path)}, signal=controller.signal))

        tasks.start_soon(run)
        await journal.planned.wait()
        await all_blocked()
        assert not path.exists()
        act(journal, controller)
    return results[0]


async def test_an_act_in_a_worker_waits_until_its_plan_is_durable(tmp_path: Path) -> None:
    result = await written(tmp_path / "f", lambda journal, _: journal.durable.set())
    assert (tmp_path / "f").exists()
    assert [one.stage for one in result.effects.records] == [EffectStage.APPLIED]


async def test_an_act_whose_plan_cannot_be_recorded_is_not_begun(tmp_path: Path) -> None:
    def fail(journal: Slow, _: AbortController) -> None:
        journal.failing = True
        journal.durable.set()

    result = await written(tmp_path / "f", fail)
    assert not (tmp_path / "f").exists()
    assert [one.stage for one in result.effects.records] == [EffectStage.NOT_APPLIED]
    assert result.error is not None
    assert "no space left" in result.error.message


async def test_an_act_that_was_stopped_while_it_waited_is_known_not_to_have_begun(tmp_path: Path) -> None:
    result = await written(tmp_path / "f", lambda _, controller: controller.abort("stop"))
    assert not (tmp_path / "f").exists()
    assert (result.outcome, result.ended) == (Outcome.ABORTED, Ended.STOPPED)
    assert [one.stage for one in result.effects.records] == [EffectStage.NOT_APPLIED]
