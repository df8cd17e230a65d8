"""Bodies in worker processes: what works as in the host, what does not, and what is said about each end."""

import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from isolation import workers
from liveness import unique_duration
from stillness import all_blocked

from toolrunner import AbortController, MemoryJournal, Runner, ToolCall, ToolResult, tool
from toolrunner.facts import Containment, EffectStage, EffectState, Evidence, Source, StopPhase
from toolrunner.process import Supervisor
from toolrunner.process.kept import KeptProcess
from toolrunner.records import EffectPlanned, Record
from toolrunner.results import Code, Ended, Outcome
from toolrunner.tools import Tools

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

BOUND = 60.0
"""Seconds for a test. A worker imports the package, which takes half a second here and several on a machine that is busy."""

LIMITS = (1.0, 4.0, 16.0)
"""Seconds a body is given, until one was enough for its worker to start: a time limit counts from the release."""


@asynccontextmanager
async def opened(*tools: Tools, **settings: Any) -> AsyncIterator[Runner]:
    with anyio.fail_after(BOUND):
        async with Runner(tools, **settings) as runner:
            yield runner


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


# What works as it does in the host.


@pytest.mark.parametrize("body", [workers.hello, workers.hello_sync])
async def test_a_body_in_a_worker_has_effects_output_progress_and_follow_ups(body: Any) -> None:
    records = list[Record]()
    async with opened(body) as runner:
        call = ToolCall(body.name, {"name": "you"}, call_id="c1")
        (result,) = await runner.run_batch([call], on_event=records.append)
    assert (result.outcome, result.ended, result.started) == (Outcome.SUCCEEDED, Ended.RETURNED, True)
    assert isinstance(result.value, dict)
    assert result.process is not None
    pid = result.process.pid
    assert pid != os.getpid()
    assert result.value == {"hi": "you", "run_id": result.run_id, "call_id": "c1", "attempt": 1, "pid": pid}
    assert (result.effects.state, result.effects.evidence) == (EffectState.COMPLETED, Evidence.REPORTED)
    assert [(one.kind, one.target, one.stage, one.receipt) for one in result.effects.records] == [
        ("greeting", "you", EffectStage.APPLIED, "r1")
    ]
    assert result.follow_up == ({"to": "you"},)
    assert (result.process.stdout, result.process.stderr) == ("printed\n", "complained\n")
    assert (result.still_running, result.enforced) == ((), ("kill_tree",))
    outputs = [(one.stream, one.text) for one in records if one.type == "output"]
    assert sorted(outputs) == [("output", "said"), ("stderr", "complained\n"), ("stdout", "printed\n")]
    assert [(one.message, one.done, one.total) for one in records if one.type == "progress"] == [("half", 1, 2)]
    dispatched = next(one for one in records if one.type == "call/dispatched")
    assert dispatched.process is not None
    assert dispatched.process.pid == pid


async def test_each_call_has_a_process_of_its_own_and_shares_nothing_with_another() -> None:
    async with opened(workers.surroundings) as runner:
        first, second = [(await runner.run("surroundings")).value for _ in range(2)]
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first == second
    assert first["count"] == 1
    assert workers.counter == [0]
    assert first["isolated"] == 1
    assert first["inherited"] == []
    assert first["path"] == [path or os.getcwd() for path in sys.path]
    assert first["cwd"] == os.getcwd()


async def test_a_body_runs_on_the_kind_of_loop_that_its_host_has(anyio_backend: tuple[str, dict[str, Any]]) -> None:
    async with opened(workers.loop_name) as runner:
        assert (await runner.run("loop_name")).value == anyio_backend[0]


async def test_a_function_that_became_a_tool_under_another_name_is_found_by_its_own() -> None:
    async with opened(workers.renamed) as runner:
        assert (await runner.run("another_name")).value == "plain"


async def test_a_reply_comes_back_whole() -> None:
    async with opened(workers.replies) as runner:
        result = await runner.run("replies", {"text": "shown ☃"})
    assert (result.value, result.follow_up) == ({"n": 1}, ("more",))
    assert [getattr(part, "text", "") for part in result.content] == ["shown ☃"]


async def test_an_isolated_body_makes_child_calls_in_its_host() -> None:
    @tool
    def adder(a: int, b: int) -> int:
        return a + b

    async with opened(workers.calls, adder) as runner:
        result = await runner.run("calls")
        missing = await runner.run("calls", {"name": "nobody"})
    assert result.value == {"value": 3, "outcome": "succeeded", "parent": True}
    assert isinstance(missing.value, dict)
    assert missing.value["outcome"] == "rejected"


async def test_a_retry_is_a_new_worker_that_knows_its_number() -> None:
    async with opened(workers.second_time) as runner:
        result = await runner.run("second_time")
    assert (result.value, result.attempts, result.outcome) == (2, 2, Outcome.SUCCEEDED)


async def test_an_isolated_body_runs_without_a_keeper_and_says_so() -> None:
    def best_effort() -> Supervisor:
        return Supervisor(containment=Containment.BEST_EFFORT)

    async with opened(workers.hello, supervisor=best_effort) as runner:
        result = await runner.run("hello", {"name": "you"})
    assert result.outcome is Outcome.SUCCEEDED
    assert (result.still_running, result.enforced) == (None, ())
    assert result.missing


# What does not work, in words that say why.


async def test_deps_stay_behind_and_whoever_wants_them_is_told() -> None:
    async with opened(workers.uses_deps, deps={"database": 1}) as runner:
        result = await runner.run("uses_deps")
    assert result.outcome is Outcome.FAILED
    assert result.error is not None
    assert "ctx.deps is not there in a worker process" in result.error.message


async def test_a_sync_body_in_a_worker_cannot_make_child_calls() -> None:
    async with opened(workers.calls_sync) as runner:
        result = await runner.run("calls_sync")
    assert result.error is not None
    assert "AsyncOnly: ctx.run has to be awaited" in result.error.message


@pytest.mark.parametrize("what", ["object", "nan", "huge"])
async def test_a_value_that_cannot_be_sent_is_invalid_output(what: str) -> None:
    async with opened(workers.returns) as runner:
        result = await runner.run("returns", {"what": what})
    assert (result.outcome, result.code, result.ended) == (Outcome.FAILED, Code.INVALID_OUTPUT, Ended.RETURNED)


@pytest.mark.parametrize(
    "kind, message",
    [
        ("tool_error", "no such row"),
        ("group", "ExceptionGroup: two: ValueError: a; KeyError: 'b'"),
        ("surrogate", "FileNotFoundError: [Errno 2] No such file: 'bad\\udcff'"),
        ("other", "LookupError: nothing there"),
    ],
)
async def test_an_error_is_told_as_in_the_host(kind: str, message: str) -> None:
    async with opened(workers.raises) as runner:
        result = await runner.run("raises", {"kind": kind})
    assert (result.outcome, result.code, result.ended) == (Outcome.FAILED, Code.TOOL_ERROR, Ended.RAISED)
    assert result.error is not None
    assert result.error.message == message
    assert result.error.kind == ("not_found" if kind == "tool_error" else "exception")
    assert message in result.summary()


async def test_arguments_too_large_to_be_sent_are_refused_before_anything_runs() -> None:
    async with opened(workers.hello) as runner:
        result = await runner.run("hello", {"name": "x" * (33 << 20)})
    assert (result.outcome, result.code, result.started) == (Outcome.REJECTED, Code.SPAWN_REFUSED, False)


async def test_a_module_that_changed_since_it_was_registered_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "changing_tools.py"
    source = "from toolrunner import tool\n\n@tool(isolation='process')\ndef changing() -> int:\n    return 1\n"
    module.write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    changing = __import__("changing_tools").changing
    try:
        async with opened(changing) as runner:
            before = await runner.run("changing")
            module.write_text(source.replace("return 1", "return 2"))
            after = await runner.run("changing")
            module.unlink()
            gone = await runner.run("changing")
    finally:
        del sys.modules["changing_tools"]
    assert before.value == 1
    assert (after.outcome, after.code, after.value) == (Outcome.FAILED, Code.TOOL_ERROR, None)
    assert after.error is not None
    assert "source is another one" in after.error.message
    assert gone.error is not None
    assert "could not import changing_tools.changing: ModuleNotFoundError" in gone.error.message


# Stops.


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


# Effects: durable in the host before the act, wherever the act is.


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


# Hostile bodies. Each is over, told truthfully, and leaves nothing behind (the guard around every test looks).


async def hostile(how: str, path: str = "") -> ToolResult:
    async with opened(workers.hostile) as runner:
        return await runner.run("hostile", {"how": how, "path": path})


@pytest.mark.parametrize("status", [0, 3])
async def test_a_worker_that_leaves_without_an_answer_failed_by_its_exit_status(status: int) -> None:
    result = await hostile(f"os._exit({status})")
    assert (result.outcome, result.code, result.ended) == (Outcome.FAILED, Code.EXIT_STATUS, Ended.RETURNED)
    assert result.process is not None
    assert result.process.exit_code == status
    assert result.error is not None
    assert result.error.message == f"the worker process left with exit status {status} before the tool had returned"
    assert result.effects.state is EffectState.UNKNOWN


@pytest.mark.parametrize("how, signal", [("kill", "SIGKILL"), ("segfault", "SIGSEGV"), ("stack", "SIGSEGV")])
async def test_a_worker_that_dies_was_killed_by_its_signal(how: str, signal: str) -> None:
    result = await hostile(how)
    assert (result.outcome, result.code) == (Outcome.FAILED, Code.KILLED_BY_SIGNAL)
    assert result.process is not None
    assert result.process.signal == signal
    assert result.process.stdout == ("last words\n" if how == "kill" else "")


@pytest.mark.parametrize(
    "how, said", [("sys.exit", "SystemExit: 4"), ("interrupt", "KeyboardInterrupt"), ("recursion", "Recurs")]
)
async def test_an_exit_or_an_interrupt_in_a_worker_is_its_own_affair(how: str, said: str) -> None:
    result = await hostile(how)
    assert (result.outcome, result.code, result.ended) == (Outcome.FAILED, Code.TOOL_ERROR, Ended.RAISED)
    assert result.error is not None
    assert result.error.message.startswith(said)


async def test_a_fork_that_outlives_its_worker_is_ended_with_it() -> None:
    result = await hostile("fork")
    assert (result.code, result.still_running) == (Code.EXIT_STATUS, ())
    assert result.process is not None
    assert len(result.process.leftovers) == 1


async def test_a_fork_that_returns_from_a_sync_body_gives_no_second_answer() -> None:
    result = await hostile("twice")
    assert (result.outcome, result.value, result.still_running) == (Outcome.SUCCEEDED, "returned", ())


@pytest.mark.parametrize("raw", [False, True])
async def test_a_fork_that_returns_from_an_async_body_gives_no_answer_at_all(raw: bool) -> None:
    async with opened(workers.forks_and_returns) as runner:
        result = await runner.run("forks_and_returns", {"raw": raw})
    assert result.process is not None
    assert (result.outcome, result.value) == (Outcome.SUCCEEDED, f"returned in {result.process.pid}")
    assert result.still_running == ()
    assert "this is a fork of the worker" in result.process.stderr


@pytest.mark.parametrize("how", ["close", "reuse"])
async def test_a_body_that_closes_its_channel_is_ended_and_its_files_are_not_written_to(how: str, tmp_path: Path) -> None:
    result = await hostile(how, str(tmp_path / "mine"))
    assert (result.outcome, result.effects.state, result.still_running) == (Outcome.FAILED, EffectState.UNKNOWN, ())
    assert result.error is not None
    assert result.process is not None
    # Its loop lost its descriptors too. Either it noticed and left, or it hung and was ended; both are told as they were.
    if result.code is Code.EXIT_STATUS:
        assert result.process.exit_code == 70
        assert "toolrunner: " in result.process.stderr
        assert "how the tool ended" in result.process.stderr
    else:
        assert (result.code, result.ended) == (Code.LOST, Ended.LOST)
        assert "the tool closed the worker's channel" in result.error.message
    if how == "reuse":
        assert b"answer" not in (tmp_path / "mine").read_bytes()


@pytest.mark.parametrize("how", ["garbage", "giant", "unknown effect"])
async def test_a_worker_that_cannot_be_understood_is_ended_and_nothing_is_claimed(how: str) -> None:
    result = await hostile(how)
    assert (result.outcome, result.code, result.ended) == (Outcome.FAILED, Code.LOST, Ended.LOST)
    assert (result.effects.state, result.effects.records, result.still_running) == (EffectState.UNKNOWN, (), ())


async def test_megabytes_of_output_are_bounded_and_counted_and_the_value_is_not_among_them() -> None:
    result = await hostile("print")
    assert (result.outcome, result.value) == (Outcome.SUCCEEDED, "returned")
    assert result.process is not None
    assert result.process.stdout_bytes == 4096 * 1024
    assert result.process.truncated
    assert len(result.process.stdout) < 2 << 20


async def test_a_thread_that_the_body_left_does_not_hold_its_result() -> None:
    result = await hostile("thread")
    assert (result.outcome, result.value, result.ended) == (Outcome.SUCCEEDED, "returned", Ended.RETURNED)
    assert (result.stop, result.still_running) == (None, ())


async def test_a_process_that_the_body_left_is_ended_with_its_worker() -> None:
    result = await hostile("background", unique_duration())
    assert (result.outcome, result.still_running) == (Outcome.SUCCEEDED, ())
    assert result.process is not None
    assert [one.what for one in result.process.leftovers] == ["sleep"]
