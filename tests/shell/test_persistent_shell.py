"""A shell that lives on between calls: what is kept, what each call is told by, how it ends, and what is never left."""

from pathlib import Path

import anyio
import pytest
from shell.session import BOUND, PROGRAMS, err, opened, out, restarted
from stillness import all_blocked

from toolrunner import Runner, ToolCall, Toolset
from toolrunner.errors import ConfigError, ToolDefinitionError
from toolrunner.facts import EffectState, Evidence
from toolrunner.records import Record
from toolrunner.results import Code, Ended, Outcome
from toolrunner.tools import AnyTool, InvalidArguments, persistent_shell

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


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


# What a call leaves behind.


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
