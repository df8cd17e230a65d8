"""Started where programs seldom are: in a folder that was removed, without streams, with a full disk for a standard output."""

import json
import subprocess
from pathlib import Path

import pytest
from cli.program import BOUND, PROGRAM, Done, environment

from toolrunner.cli import doctor
from toolrunner.facts import Containment
from toolrunner.process import Abilities

CALL = json.dumps({"name": "shell", "arguments": {"command": "echo here"}}).encode()


def from_shell(script: str, folder: Path, stdin: bytes = b"") -> Done:
    """Run a script in which `$T` is the program."""
    done = subprocess.run(
        ["sh", "-c", script.replace("$T", " ".join(PROGRAM))],
        input=stdin, capture_output=True, cwd=folder, env=environment(), timeout=BOUND, check=False,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return Done(done.returncode, done.stdout, done.stderr)


def in_a_removed_folder(words: str, folder: Path, stdin: bytes = b"") -> Done:
    return from_shell(f"mkdir gone && cd gone && rmdir ../gone && exec $T {words}", folder, stdin)


REMOVED = "this program's own working directory was removed"


@pytest.mark.parametrize(
    "words", ["-- true", "--cwd . -- true", "--cwd / --watch-writes . -- true", "--cwd / --watch-writes x -- true"]
)
def test_a_command_that_would_run_in_a_removed_folder_is_refused_with_a_reason(words: str, tmp_path: Path) -> None:
    done = in_a_removed_folder(f"run --json {words}", tmp_path)
    assert (done.status, done.result["outcome"], done.result["started"]) == (125, "rejected", False)
    assert REMOVED in done.result["error"]["message"]


def test_a_command_that_runs_elsewhere_does_not_miss_a_removed_folder(tmp_path: Path) -> None:
    done = in_a_removed_folder(f"run -q --cwd / --watch-writes {tmp_path} -- pwd", tmp_path)
    assert (done.status, done.out) == (0, b"/\n")


def test_a_batch_in_a_removed_folder_answers_each_line(tmp_path: Path) -> None:
    elsewhere = json.dumps({"name": "shell", "arguments": {"command": "pwd", "cwd": "/"}}).encode()
    done = in_a_removed_folder("batch -", tmp_path, CALL + b"\n" + elsewhere)
    assert done.status == 0
    assert [one["outcome"] for one in done.lines] == ["rejected", "succeeded"]
    assert REMOVED in done.lines[0]["error"]["message"]


@pytest.mark.root
def test_without_proc_a_command_runs_and_its_result_says_what_is_not_known(tmp_path: Path) -> None:
    words = "run --json --timeout 0.5 -- sh -c 'echo here; sleep 613'"
    done = from_shell(f'exec unshare -m sh -c "mount -t tmpfs none /proc && exec $T {words}"', tmp_path)
    result = done.result
    assert (done.status, result["outcome"], result["process"]["stdout"]) == (124, "timed_out", "here\n")
    assert (result["process"]["containment"], result["still_running"]) == ("best_effort", None)
    assert "/proc cannot be read" in str(result["missing"])


def test_doctor_does_not_blame_the_kernel_for_an_interpreter_that_cannot_be_run() -> None:
    abilities = Abilities(Containment.BEST_EFFORT, "/etc/passwd", ("the interpreter '/etc/passwd' cannot be run",), 1)
    fixes = {promise.fix for promise in doctor._promises(abilities) if "interpreter" in promise.reason}
    assert fixes == {"run it with a Python that this user may execute: /etc/passwd is none"}


def test_tools_are_looked_for_although_the_folder_was_removed(tmp_path: Path) -> None:
    done = in_a_removed_folder("batch - --tools nowhere:tool", tmp_path, CALL)
    assert done.status == 2
    assert b"cannot import nowhere" in done.err


@pytest.mark.parametrize("words", ["schema", "doctor", "doctor --json", "--version", "--help", "run --help", ""])
def test_what_cannot_be_written_is_said_in_one_line(words: str, tmp_path: Path) -> None:
    done = from_shell(f"$T {words} > /dev/full", tmp_path)
    assert done.status == 74
    assert done.err == b"toolrunner: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("words", ["schema", "doctor", "--version", "--help", "run -- echo here", "run --json -- echo here"])
@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_without_standard_streams_everything_goes_its_way(words: str, closed: str, tmp_path: Path) -> None:
    # A result that was asked for and has nowhere to go is no success.
    lost = "--json" in words and "1>&-" in closed
    assert from_shell(f"$T {words} {closed}", tmp_path).status == (74 if lost else 0)


def test_a_batch_without_a_standard_input_is_an_empty_one(tmp_path: Path) -> None:
    done = from_shell("$T batch - 0<&-", tmp_path)
    assert (done.status, done.out, done.err) == (0, b"", b"")
