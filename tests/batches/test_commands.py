"""Batches of real commands: stopped, reported with everything they left, and nothing of them running."""

import os
from pathlib import Path
from typing import Any

import pytest
from batches.stage import assert_claims_no_more_than_known, assert_never_entered, opened, text, until
from liveness import Lifeline, survivors, unique_duration
from stillness import all_blocked

from toolrunner import AbortController, Command, ToolCall, ToolResult, command_tool, shell
from toolrunner.records import Record

pytestmark = pytest.mark.anyio


@command_tool(parallel_safe=True, kill_after=0.3)
def script(line: str, watch: list[str] = []) -> Command:  # noqa: B006 - a schema needs the default's value
    return Command(("bash", "-c", line), output_limit=2000, watch=tuple(watch))


async def stopped(line: str, ready: str, **settings: Any) -> ToolResult:
    """Run a command until its output has `ready`, then abort it."""
    controller, said = AbortController(), list[str]()

    def observe(record: Record) -> None:
        if record.type == "output":
            said.append(record.text)
            if ready in "".join(said):
                controller.abort("seen enough")

    async with opened(script, bound=20, **settings) as runner:
        call = ToolCall("script", {"line": line})
        (result,) = await runner.run_batch([call], signal=controller.signal, on_event=observe)
    return result


@pytest.mark.case("E3")
async def test_a_command_that_is_stopped_keeps_its_output_and_its_signal() -> None:
    result = await stopped("echo part; echo trouble >&2; echo ready; sleep 613", "ready")
    assert (result.outcome, result.code, result.started, result.ended) == ("aborted", "ABORTED", True, "stopped")
    assert result.process is not None
    assert (result.process.exit_code, result.process.signal) == (None, "SIGTERM")
    assert result.process.stdout == "part\nready\n"
    assert result.process.stderr == "trouble\n"
    assert result.stop is not None
    assert (result.stop.signals, result.stop.escalated) == (("SIGTERM",), False)
    assert result.still_running == ()
    said = text(result)
    assert "part\nready" in said
    assert "trouble" in said
    assert "Signal: SIGTERM." in said
    assert (result.effects.state, result.retry) == ("unknown", "check_first")
    assert_claims_no_more_than_known(result)


@pytest.mark.case("E3")
async def test_a_command_that_cleans_up_when_told_to_stop_keeps_its_exit_code() -> None:
    result = await stopped("trap 'echo cleaned; exit 7' TERM; echo ready; while :; do sleep 0.01; done", "ready")
    assert (result.outcome, result.code, result.ended) == ("aborted", "ABORTED", "stopped")
    assert result.process is not None
    assert (result.process.exit_code, result.process.signal) == (7, None)
    assert result.process.stdout == "ready\ncleaned\n"
    assert "Exit status: 7." in text(result)
    assert_claims_no_more_than_known(result)


@pytest.mark.case("E3")
async def test_a_command_that_ignores_term_is_killed_and_says_so() -> None:
    result = await stopped("trap '' TERM; echo ready; while :; do sleep 0.01; done", "ready")
    assert (result.outcome, result.ended) == ("aborted", "stopped")
    assert result.process is not None
    assert result.process.signal == "SIGKILL"
    assert result.stop is not None
    assert (result.stop.signals, result.stop.escalated) == (("SIGTERM", "SIGKILL"), True)
    assert "ended by SIGKILL after SIGTERM" in result.summary()


async def test_a_descendant_that_closed_its_output_has_its_grace_after_the_leader_went(tmp_path: Path) -> None:
    cleaned = tmp_path / "cleaned"
    trap = f"trap 'sleep 0.1; exec >/dev/null 2>&1; sleep 0.2; touch {cleaned}; exit' TERM"
    cleaner = f"{trap}; touch {tmp_path}/up; while :; do sleep 0.01; done"
    (tmp_path / "cleaner.sh").write_text(cleaner)
    line = f"bash {tmp_path}/cleaner.sh & while [ ! -e {tmp_path}/up ]; do sleep 0.01; done; echo ready; sleep 613"
    controller = AbortController()

    @command_tool(kill_after=10)
    def patient(line: str) -> Command:
        return Command(("bash", "-c", line))

    def observe(record: Record) -> None:
        if record.type == "output":
            controller.abort()

    async with opened(patient, bound=20) as runner:
        (result,) = await runner.run_batch([ToolCall("patient", {"line": line})], signal=controller.signal, on_event=observe)
    assert cleaned.exists()
    assert result.stop is not None
    assert (result.stop.signals, result.stop.escalated) == (("SIGTERM",), False)
    assert result.still_running == ()


@pytest.mark.case("E3")
async def test_the_output_of_a_stopped_command_past_its_limit_is_in_the_file_that_the_result_names(tmp_path: Path) -> None:
    result = await stopped("seq 1 5000; echo ready; sleep 613", "ready", spill_dir=tmp_path / "spill")
    assert result.process is not None
    assert result.process.truncated
    assert result.process.stdout_bytes == len("".join(f"{n}\n" for n in range(1, 5001))) + len("ready\n")
    assert result.process.stdout.startswith("1\n2\n")
    assert result.process.stdout.endswith("ready\n")
    assert len(result.process.spill) == 1
    spill = Path(result.process.spill[0])
    assert spill.read_text() == "".join(f"{n}\n" for n in range(1, 5001)) + "ready\n"
    assert spill.parent == tmp_path / "spill"
    assert spill.stat().st_mode & 0o777 == 0o600
    assert str(spill) in text(result)


async def test_without_a_folder_for_it_output_past_the_limit_is_only_counted() -> None:
    result = await stopped("seq 1 5000; echo ready; sleep 613", "ready")
    assert result.process is not None
    assert (result.process.truncated, result.process.spill) == (True, ())
    assert "More of its output" not in text(result)


@pytest.mark.case("E20")
@pytest.mark.parametrize("watched", [True, False], ids=["watched", "unwatched"])
async def test_the_first_of_two_commands_is_stopped_once_its_file_is_there_and_the_second_never_starts(
    watched: bool, tmp_path: Path
) -> None:
    controller, mark = AbortController(), unique_duration()
    started, skipped = tmp_path / "started.txt", tmp_path / "skipped.txt"

    @command_tool(name="shell", watch=tmp_path)
    def watched_shell(command: str) -> Command:
        return Command(("/bin/sh", "-c", command), cwd=tmp_path)

    with Lifeline(tmp_path.parent) as line:
        async with opened(watched_shell if watched else shell, bound=20) as runner:
            first = f"{line.sh}; cd {tmp_path}; echo 1 > started.txt; setsid sleep {mark} & while :; do sleep 0.01; done"
            batch = runner.start_batch(
                [ToolCall("shell", {"command": first}), ToolCall("shell", {"command": f"cd {tmp_path}; echo 2 > skipped.txt"})],
                signal=controller.signal,
            )
            await line.opened()
            await until(started.exists)
            controller.abort("the user pressed stop")
            one, two = results = await batch
            assert line.is_gone()
    assert (started.exists(), skipped.exists()) == (True, False)
    assert await survivors(mark) == []
    assert (one.outcome, one.code, one.started, one.ended) == ("aborted", "ABORTED", True, "stopped")
    assert one.effects.state != "none"
    assert (one.effects.state, one.still_running) == ("unknown", ())
    assert_claims_no_more_than_known(one)
    assert "may have taken effect" in text(one)
    if watched:
        assert one.files_changed == (str(started),)
        assert one.effects.evidence == "observed"
        assert str(started) in text(one)
        assert str(started) in one.summary()
    else:
        assert one.files_changed is None
    assert_never_entered(two)
    assert two.effects.changes is None
    assert results.still_running == ()
    assert results.stopped is not None
    assert results.stopped.reason == "the user pressed stop"


async def test_commands_in_a_pool_are_stopped_together_and_nothing_is_left(tmp_path: Path) -> None:
    controller, mark = AbortController(), unique_duration()
    with Lifeline(tmp_path) as line:
        async with opened(script, bound=30) as runner:
            calls = [ToolCall("script", {"line": f"{line.sh}; sleep {mark} & sleep {mark}"}) for _ in range(8)]
            batch = runner.start_batch([*calls, ToolCall("script", {"line": "true"}), ToolCall("nope")], signal=controller.signal)
            await line.opened(8)
            controller.abort()
            results = await batch
            assert line.is_gone()
    assert {(result.outcome, result.ended) for result in results[:8]} == {("aborted", "stopped")}
    assert results.still_running == ()
    assert await survivors(mark) == []


async def test_a_watched_folder_that_the_command_removes_costs_no_result(tmp_path: Path) -> None:
    folder = tmp_path / "watched"
    folder.mkdir()
    (folder / "file").touch()
    async with opened(script, bound=20) as runner:
        result = await runner.run("script", {"line": f"rm -r {folder}", "watch": [str(folder)]})
    assert (result.outcome, result.ended) == ("succeeded", "returned")
    assert result.files_changed is not None
    assert str(folder / "file") in result.files_changed


async def test_output_that_is_no_utf8_is_shown_and_counted() -> None:
    async with opened(script, bound=20) as runner:
        result = await runner.run("script", {"line": r"printf 'a\377b'"})
    assert result.outcome == "succeeded"
    assert result.process is not None
    assert (result.process.stdout, result.process.stdout_bytes) == ("a\N{REPLACEMENT CHARACTER}b", 3)


async def test_a_timeout_of_a_command_is_its_outcome_and_its_text() -> None:
    async with opened(script, bound=20) as runner:
        result = await runner.run(ToolCall("script", {"line": "echo part; sleep 613"}, timeout=0.2))
    assert (result.outcome, result.code, result.started, result.ended) == ("timed_out", "TIMED_OUT", True, "stopped")
    assert result.process is not None
    assert result.process.stdout == "part\n"
    assert result.stop is not None
    assert (result.stop.source, result.stop.phase) == ("timeout", "running")
    assert "The call ran over its time limit and was stopped." in text(result)
    assert_claims_no_more_than_known(result)


@pytest.mark.parametrize(
    "argv, kind",
    [
        (("/nonexistent/program",), "not_found"),
        (("nonexistent-program-of-no-path",), "not_found"),
        (("/etc/hostname",), "not_executable"),
    ],
)
async def test_a_program_that_cannot_be_run_is_refused_and_nothing_ran(argv: tuple[str, ...], kind: str) -> None:
    @command_tool
    def start() -> Command:
        return Command(argv)

    async with opened(start, bound=20) as runner:
        result = await runner.run("start")
    assert (result.outcome, result.code, result.started, result.ended) == ("rejected", "SPAWN_REFUSED", False, None)
    assert result.error is not None
    assert result.error.kind == kind
    assert argv[0] in result.error.message
    assert (result.effects.evidence, result.still_running) == ("not_started", ())
    assert "It was not started, so it had no effects." in text(result)


async def test_a_working_directory_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    async with opened(shell, bound=20) as runner:
        for cwd in (tmp_path / "missing", __file__):
            result = await runner.run("shell", {"command": "true", "cwd": str(cwd)})
            assert (result.outcome, result.code, result.started) == ("rejected", "SPAWN_REFUSED", False)
            assert result.error is not None
            assert str(cwd) in result.error.message


async def test_a_nul_in_a_command_is_refused_by_name() -> None:
    async with opened(shell, bound=20) as runner:
        result = await runner.run("shell", {"command": "echo \0"})
    assert (result.outcome, result.code, result.started) == ("rejected", "INVALID_ARGUMENTS", False)
    assert result.error is not None
    assert "NUL" in result.error.message


async def test_max_processes_bounds_the_commands_of_all_batches(tmp_path: Path) -> None:
    with Lifeline(tmp_path) as line:
        async with opened(script, max_processes=2, bound=20) as runner:
            go = tmp_path / "go"
            loop = f"{line.sh}; while [ ! -e {go} ]; do sleep 0.01; done"
            batches = [runner.start_batch([ToolCall("script", {"line": loop})]) for _ in range(3)]
            await line.opened(2)
            await all_blocked()
            assert runner._services is not None
            assert runner._services.leases.held == 2
            go.touch()
            assert [(await batch)[0].outcome for batch in batches] == ["succeeded"] * 3
    assert os.path.exists(go)
