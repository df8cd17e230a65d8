"""Hostile bodies in worker processes: each is over, told truthfully, and leaves nothing behind (the leak guard looks)."""

import sys
from pathlib import Path

import pytest
from isolation import workers
from isolation.opening import opened
from liveness import unique_duration

from toolrunner import ToolResult
from toolrunner.facts import EffectState
from toolrunner.results import Code, Ended, Outcome

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


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


OVERFLOWS = pytest.mark.skipif(sys.version_info >= (3, 12), reason="since 3.12 the interpreter guards its C stack")


@pytest.mark.parametrize(
    "how, signal", [("kill", "SIGKILL"), ("segfault", "SIGSEGV"), pytest.param("stack", "SIGSEGV", marks=OVERFLOWS)]
)
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
    mine = tmp_path / "mine"
    mine.touch()  # a loop that notices at once ends the worker before the body has opened anything
    result = await hostile(how, str(mine))
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
    assert b"answer" not in mine.read_bytes()


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
