"""How a persistent shell ends, and what a call in it leaves behind."""

import os
import signal
from pathlib import Path

import pytest
from liveness import Lifeline, survivors, unique_duration
from shell.session import PROGRAMS, Session, err, opened, out, restarted

from toolrunner import AbortController, ToolCall, ToolResult
from toolrunner.facts import Containment, EffectState, Source
from toolrunner.process import Supervisor
from toolrunner.records import Record
from toolrunner.results import Code, Ended, Outcome
from toolrunner.tools import persistent_shell

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.mark.parametrize("line, status", [("exit 3", 3), ("set -e; false", 1), ("exec sh -c 'exit 4'", 4)])
async def test_a_shell_that_left_by_itself_gives_its_status_and_the_next_call_a_note(line: str, status: int) -> None:
    async with opened() as shell:
        await shell("kept=1")
        result = await shell(f"echo bye; {line}")
        assert (result.outcome, result.code, result.ended) == (Outcome.FAILED, Code.EXIT_STATUS, Ended.RETURNED)
        assert result.process is not None
        assert (result.process.exit_code, out(result), result.still_running) == (status, "bye\n", ())
        assert (restarted(result), result.enforced) == ([], ("kill_tree",))
        result = await shell("echo ${kept-new}")
        assert out(result) == "new\n"
        (note,) = restarted(result)
        assert f"the last one had left with exit status {status}" in note
        assert restarted(await shell("true")) == []


async def test_a_shell_that_was_killed_is_told_by_its_signal() -> None:
    async with opened() as shell:
        result = await shell("kill -9 $$")
        assert (result.outcome, result.code) == (Outcome.FAILED, Code.KILLED_BY_SIGNAL)
        pid = int(await shell.said("echo $$"))
        os.kill(pid, signal.SIGKILL)
        # The runner may not have heard of it yet; then the call finds out, and the one after it has a new shell.
        results = [await shell("echo $$") for _ in range(2)]
        assert out(results[1]).strip() != str(pid)
        assert any("was killed by SIGKILL" in note for result in results for note in restarted(result))


async def stopped(shell: Session, line: str, *, ready: str, controller: AbortController) -> ToolResult:
    """Run a line and abort it once it has said that it is ready."""

    def observe(record: Record) -> None:
        if record.type == "output" and ready in record.text:
            controller.abort("seen enough")

    call = ToolCall("shell", {"command": line})
    (result,) = await shell.runner.run_batch([call], signal=controller.signal, on_event=observe)
    return result


async def test_an_abort_ends_the_shell_with_all_it_started(tmp_path: Path) -> None:
    hidden = unique_duration()
    with Lifeline(tmp_path) as line:
        async with opened() as shell:
            await shell("kept=1")
            # A bash that has forked and not yet executed loses a SIGTERM (its handler only leaves a mark, which exec wipes out);
            # so both programs say that they are there before the abort.
            there = tmp_path / "there"
            os.mkfifo(there)
            escaped = f"(setsid sh -c 'echo >{there}; exec sleep {hidden}' &); read <{there}"
            command = f"{line.sh}; {escaped}; sh -c 'echo ready; exec sleep 613'"
            result = await stopped(shell, command, ready="ready", controller=AbortController())
            assert (result.outcome, result.code, result.ended) == (Outcome.ABORTED, Code.ABORTED, Ended.STOPPED)
            assert result.stop is not None
            assert (result.stop.source, result.stop.signals) == (Source.CALLER, ("SIGTERM",))
            assert (out(result), result.still_running, result.enforced) == ("ready\n", (), ("kill_tree",))
            assert result.effects.state is EffectState.UNKNOWN
            assert await survivors(hidden) == []
            assert restarted(result) == []
            result = await shell("echo ${kept-new}")
            assert out(result) == "new\n"
            assert "the last one was ended" in restarted(result)[0]
        await line.opened()
        assert line.is_gone()


@pytest.mark.parametrize("where", ["call", "arguments", "tool"])
async def test_a_time_limit_ends_the_shell(where: str) -> None:
    async with opened(persistent_shell(timeout=0.2 if where == "tool" else None)) as shell:
        call = ToolCall("shell", {"command": "echo part; sleep 613", **({"timeout": 0.2} if where == "arguments" else {})})
        if where == "call":
            call = ToolCall("shell", call.arguments, timeout=0.2)
        result = await shell.runner.run(call)
        assert (result.outcome, result.code, result.ended) == (Outcome.TIMED_OUT, Code.TIMED_OUT, Ended.STOPPED)
        assert (out(result), result.still_running) == ("part\n", ())
        assert result.stop is not None
        assert result.stop.source == Source.TIMEOUT
        assert len(restarted(await shell("true"))) == 1


async def test_a_shell_that_ignores_the_request_is_killed_after_the_grace() -> None:
    async with opened(persistent_shell(kill_after=0.2)) as shell:
        line = "trap '' TERM; echo ready; while :; do sleep 613; done"
        result = await stopped(shell, line, ready="ready", controller=AbortController())
    assert (result.outcome, result.ended, result.still_running) == (Outcome.ABORTED, Ended.STOPPED, ())
    assert result.stop is not None
    assert (result.stop.signals, result.stop.escalated) == (("SIGTERM", "SIGKILL"), True)


async def test_a_line_that_never_tells_its_end_is_ended_by_its_time_limit() -> None:
    async with opened() as shell:
        result = await shell("set -n", timeout=0.2)
        assert (result.outcome, result.ended) == (Outcome.TIMED_OUT, Ended.STOPPED)
        assert await shell.said("echo again") == "again\n"


async def test_a_call_that_was_stopped_before_its_moment_has_no_shell_and_does_no_harm_to_one() -> None:
    async with opened() as shell:
        controller = AbortController()

        def abort(record: Record) -> None:
            if record.type == "call/dispatched":
                controller.abort("at the gate")

        calls = [ToolCall("shell", {"command": "echo no"})]
        (result,) = await shell.runner.run_batch(calls, signal=controller.signal, on_event=abort)
        assert (result.outcome, result.code, result.started) == (Outcome.ABORTED, Code.ABORTED_BEFORE_DISPATCH, False)
        assert await shell.said("kept=1; echo first") == "first\n"
        controller = AbortController()
        (result,) = await shell.runner.run_batch(calls, signal=controller.signal, on_event=abort)
        assert not result.started
        result = await shell("echo $kept")
        assert (out(result), restarted(result)) == ("1\n", [])


async def test_a_shell_that_was_ended_under_its_line_claims_nothing_of_it() -> None:
    supervisor = Supervisor()
    async with opened(supervisor=lambda: supervisor) as shell:

        def observe(record: Record) -> None:
            if record.type == "output":
                supervisor.stop_all(grace=0)

        calls = [ToolCall("shell", {"command": "echo ready; sleep 613"})]
        (result,) = await shell.runner.run_batch(calls, on_event=observe)
        assert (result.outcome, result.code, result.ended) == (Outcome.FAILED, Code.LOST, Ended.LOST)
        assert (out(result), result.stop, result.still_running) == ("ready\n", None, ())
        assert len(restarted(await shell("true"))) == 1


@PROGRAMS
@pytest.mark.parametrize(
    "line", ["sleep {} &", "(sleep {} &)", "setsid sleep {} &", "(setsid sh -c 'sleep {} & exit' >/dev/null 2>&1 &)"]
)
async def test_what_a_call_left_is_ended_with_it_and_listed_and_no_proof_is_claimed(line: str, program: str) -> None:
    length = unique_duration()
    async with opened(persistent_shell(program=program)) as shell:
        result = await shell(line.format(length) + "\necho $$")
        assert await survivors(length) == []
        assert result.process is not None
        assert "sleep" in [one.what for one in result.process.leftovers]
        assert (result.outcome, result.still_running, result.enforced) == (Outcome.SUCCEEDED, None, ())
        assert "the shell lives on" in result.missing[0]
        after = await shell("echo $$")
        assert (out(after), err(after)) == (out(result), "")
        assert after.process is not None
        assert after.process.leftovers == ()


async def test_what_ends_within_a_moment_is_waited_for_and_its_output_is_the_calls() -> None:
    async with opened() as shell:
        result = await shell("(sleep 0.02; echo late) & echo early")
        assert result.process is not None
        assert (out(result), result.process.leftovers) == ("early\nlate\n", ())
        assert await shell.said("echo next") == "next\n"


async def test_a_runner_that_closes_ends_its_shells(tmp_path: Path) -> None:
    with Lifeline(tmp_path) as line:
        async with opened() as shell:
            assert (await shell(line.sh)).outcome is Outcome.SUCCEEDED
            await line.opened()
        assert line.is_gone()


async def test_without_a_keeper_a_shell_works_and_says_what_it_cannot_promise() -> None:
    def best_effort() -> Supervisor:
        return Supervisor(containment=Containment.BEST_EFFORT)

    length = unique_duration()
    async with opened(supervisor=best_effort) as shell:
        await shell("kept=1")
        result = await shell(f"setsid sleep {length} & echo $kept")
        assert (out(result), result.still_running) == ("1\n", None)
        assert await survivors(length) == []
        assert result.process is not None
        assert result.process.containment is Containment.BEST_EFFORT
        result = await shell("sleep 613", timeout=0.2)
        assert (result.outcome, result.still_running) == (Outcome.TIMED_OUT, None)
        assert await shell.said("echo ${kept-new}") == "new\n"
