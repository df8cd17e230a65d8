"""A shell that lives on between calls: what is kept, what each call is told by, how it ends, and what is never left."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from liveness import Lifeline, survivors, unique_duration
from stillness import all_blocked

from toolrunner import AbortController, Runner, ToolCall, ToolResult, Toolset
from toolrunner.errors import ConfigError, ToolDefinitionError
from toolrunner.facts import Containment, EffectState, Evidence, NoteKind, Source
from toolrunner.process import Supervisor
from toolrunner.records import Record
from toolrunner.results import Code, Ended, Outcome
from toolrunner.tools import AnyTool, InvalidArguments, persistent_shell

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

BOUND = 30.0
"""Seconds for a test; milliseconds on an idle machine."""

PROGRAMS = pytest.mark.parametrize("program", ["/bin/sh", "/bin/bash"])


class Session:
    """One runner with one shell."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    async def __call__(self, command: str, **more: Any) -> ToolResult:
        return await self.runner.run(ToolCall("shell", {"command": command}, **more))

    async def said(self, command: str) -> str:
        """Run a command that succeeds, and return its output."""
        result = await self(command)
        assert result.outcome is Outcome.SUCCEEDED, result.summary()
        return out(result)


@asynccontextmanager
async def opened(tool: AnyTool | None = None, **settings: Any) -> AsyncIterator[Session]:
    with anyio.fail_after(BOUND):
        async with Runner([tool or persistent_shell()], **settings) as runner:
            yield Session(runner)


def out(result: ToolResult) -> str:
    assert result.process is not None
    return result.process.stdout


def err(result: ToolResult) -> str:
    assert result.process is not None
    return result.process.stderr


def restarted(result: ToolResult) -> list[str]:
    return [note.text for note in result.notes if note.kind is NoteKind.SHELL_RESTARTED]


# What is kept, and what each call is told by.


@PROGRAMS
async def test_folder_variables_and_functions_are_kept_between_calls(program: str, tmp_path: Path) -> None:
    async with opened(persistent_shell(program=program)) as shell:
        assert await shell.said(f"cd {tmp_path}; a=1; export B='two  words'; f() {{ echo \"f $1\"; }}") == ""
        assert await shell.said('pwd; echo $a; env | grep ^B=; f "it\'s"') == f"{tmp_path}\n1\nB=two  words\nf it's\n"
        assert await shell.said("echo $$") == await shell.said("echo $$")


async def test_a_shell_starts_in_its_folder_with_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAKEN_AWAY", "1")
    async with opened(persistent_shell(cwd=tmp_path, env={"GIVEN": "x", "TAKEN_AWAY": None})) as shell:
        assert await shell.said("pwd; echo $GIVEN; echo ${TAKEN_AWAY-gone}") == f"{tmp_path}\nx\ngone\n"


@PROGRAMS
async def test_each_call_has_its_own_output_and_status(program: str) -> None:
    async with opened(persistent_shell(program=program)) as shell:
        result = await shell("printf out; printf err >&2; (exit 7)")
        assert (result.outcome, result.code, result.ended) == (Outcome.FAILED, Code.EXIT_STATUS, Ended.RETURNED)
        assert result.value == {"exit_code": 7, "signal": None, "stdout": "out", "stderr": "err"}
        assert result.error is not None
        assert result.error.message == "exit status 7"
        result = await shell("printf 'no newline'")
        assert (result.outcome, out(result), err(result)) == (Outcome.SUCCEEDED, "no newline", "")
        assert (result.effects.state, result.effects.evidence) == (EffectState.COMPLETED, Evidence.ASSUMED)


async def test_output_is_shown_while_it_comes_and_nothing_of_the_shells_own_is_among_it() -> None:
    records = list[Record]()
    async with opened() as shell:
        calls = [ToolCall("shell", {"command": f"echo {word}; echo {word} >&2"}) for word in ("one", "two")]
        results = await shell.runner.run_batch(calls, on_event=records.append)
    for result, word in zip(results, ("one", "two"), strict=True):
        mine = [(one.stream, one.text) for one in records if one.type == "output" and one.run_id == result.run_id]
        assert sorted(mine) == [("stderr", f"{word}\n"), ("stdout", f"{word}\n")]


@PROGRAMS
@pytest.mark.parametrize(
    "line",
    [
        "echo 0 >&4",
        "printf '0\\n' >/proc/self/fd/4",
        "printf '0\\n' >&5; printf '0\\n' >&6",
        "for fd in /proc/self/fd/*; do [ $fd = /proc/self/fd/1 ] || printf '0\\n' >$fd; done",
    ],
)
async def test_no_output_is_taken_for_a_status(line: str, program: str) -> None:
    async with opened(persistent_shell(program=program)) as shell:
        result = await shell(f"{{ {line}; }} 2>/dev/null; (exit 9)")
        assert result.process is not None
        assert result.process.exit_code == 9
        assert await shell.said("echo still") == "still\n"


@PROGRAMS
async def test_what_a_line_redefines_does_not_confuse_the_shell(program: str) -> None:
    async with opened(persistent_shell(program=program)) as shell:
        await shell("printf() { echo fake; }; alias command=false; IFS=0123456789; set -f; set -u")
        result = await shell("(exit 23)")
        assert result.process is not None
        assert result.process.exit_code == 23
        assert await shell.said("echo still") == "still\n"
        await shell("exec >/dev/null 2>&1")
        assert await shell.said("echo lost") == ""
        result = await shell("(exit 24)")
        assert result.process is not None
        assert result.process.exit_code == 24


@PROGRAMS
@pytest.mark.parametrize(
    "line",
    [
        "if",
        "echo 'not closed",
        'echo "',
        "echo `",
        "echo $(",
        "x=$((",
        "f() {",
        "[[ x",
        "x=(",
        "cat <<E",
        "echo )",
        "break",
        ". /nowhere",
    ],
)
async def test_a_line_that_is_no_shell_does_not_end_the_shell(line: str, program: str) -> None:
    async with opened(persistent_shell(program=program)) as shell:
        await shell("kept=1")
        await shell(line)
        result = await shell("echo $kept")
        assert (out(result), restarted(result)) == ("1\n", [])


async def test_a_line_has_nothing_to_read_and_nothing_of_ours_open() -> None:
    async with opened() as shell:
        assert await shell.said("cat; read x; readlink /proc/self/fd/0") == "/dev/null\n"
        assert await shell.said("ls /proc/self/fd | tr '\\n' ' '") == "0 1 2 3 "  # 3 is the listing's own
        # What Python ignores is not ignored in here.
        assert await shell.said("yes | head -n 1; grep -h ^SigIgn /proc/self/status") == "y\nSigIgn:\t0000000000000000\n"


async def test_long_lines_and_long_outputs_pass() -> None:
    async with opened(persistent_shell(output_limit=1000)) as shell:
        text = "x" * 300_000
        result = await shell(f"a={text}; echo ${{#a}}")
        assert out(result) == "300000\n"
        result = await shell("head -c 5000000 /dev/zero | tr '\\0' y; printf END")
        assert result.process is not None
        assert (result.process.stdout_bytes, result.process.truncated) == (5_000_003, True)
        assert out(result).endswith("yEND")
        assert len(out(result)) < 1100
        assert await shell.said("echo next") == "next\n"


async def test_calls_wait_for_each_other_whoever_makes_them() -> None:
    async with opened() as shell, anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(shell, "n=$((${n-0} + 1)); m=$n; sleep 0.02; [ $m = $n ] || broken=1")
        tasks.start_soon(shell.runner.run_batch, [ToolCall("shell", {"command": "n=$((${n-0} + 1))"}) for _ in range(3)])
        await all_blocked()
        while (await shell("echo $n")).process is None or "8" not in await shell.said("echo $n"):
            pass
        assert await shell.said("echo $n ${broken-whole}") == "8 whole\n"


async def test_a_tool_has_one_shell_in_each_runner_under_whatever_name() -> None:
    tool = persistent_shell()
    with anyio.fail_after(BOUND):
        async with Runner([*Toolset([tool]), *Toolset([tool]).prefixed("my_")]) as one, Runner([tool]) as other:

            async def pid(runner: Runner, name: str) -> str:
                return out(await runner.run(name, {"command": "echo $$"}))

            assert await pid(one, "shell") == await pid(one, "my_shell")
            assert await pid(one, "shell") != await pid(other, "shell")


# How a shell ends.


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


# What a call leaves behind.


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


# What is refused.


@pytest.mark.parametrize(
    "tool, kind",
    [
        (persistent_shell(program="/nonexistent/sh"), "not_found"),
        (persistent_shell(program="no_such_shell"), "not_found"),
        (persistent_shell(cwd="/nonexistent/folder"), "setup"),
    ],
)
async def test_a_shell_that_cannot_be_started_is_refused(tool: AnyTool, kind: str) -> None:
    async with opened(tool) as shell:
        for _ in range(2):
            result = await shell("echo no")
            assert (result.outcome, result.code, result.started) == (Outcome.REJECTED, Code.SPAWN_REFUSED, False)
            assert result.error is not None
            assert (result.error.kind, restarted(result)) == (kind, [])


@pytest.mark.parametrize("command", ["", "a\0b", "a\udc80"])
async def test_a_line_that_no_shell_takes_is_refused(command: str) -> None:
    async with opened() as shell:
        result = await shell(command)
    assert (result.outcome, result.code) == (Outcome.REJECTED, Code.INVALID_ARGUMENTS)


def test_a_persistent_shell_is_a_tool_with_a_name_and_a_schema() -> None:
    tool = persistent_shell("bash", program="bash")
    assert (tool.name, tool.annotations.destructive, tool.is_parallel({})) == ("bash", True, False)
    assert list(tool.parameters["properties"]) == ["command", "timeout"]
    assert tool.parameters["properties"]["command"]["description"] == "The command line."
    assert tool.locks({}) == tool.locks({"command": "x"})
    assert tool.locks({}) != persistent_shell().locks({})
    with pytest.raises(InvalidArguments, match="NUL"):
        tool(command="\0")
    with pytest.raises(ToolDefinitionError, match="has a name that providers refuse"):
        persistent_shell("no name")
    with pytest.raises(ConfigError, match="output_limit"):
        persistent_shell(output_limit=-1)
