"""`toolrunner run` as scripts use it: output, input, exit statuses, settings of the command. Real programs throughout."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.program import BOUND, PROGRAM, SH, environment, running, toolrun


def test_output_and_errors_pass_byte_for_byte_and_the_status_is_the_commands_own() -> None:
    done = toolrun("run", *SH, "printf 'a\\000\\377\\n'; printf 'e\\376' >&2; exit 7")
    assert done.status == 7
    assert done.out == b"a\0\xff\n"
    assert done.err.startswith(b"e\xfe")
    assert done.err.count(b"toolrunner: command failed; exit status 7;") == 1
    assert done.err.endswith(b".\n")


def test_nothing_of_a_large_output_is_dropped_and_memory_does_not_grow_with_it() -> None:
    size = 300_000_000
    script = "import resource, subprocess, sys; p = subprocess.run(sys.argv[1:], stdout=open('/dev/null', 'wb'))\n"
    script += "print(p.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    words = [*PROGRAM, "run", "-q", *SH, f"head -c {size} /dev/zero | tee /dev/stderr | wc -c >&2"]
    out = toolrun("run", "-q", *SH, f"head -c {size} /dev/zero").out
    assert len(out) == size
    measured = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, env=environment(), timeout=BOUND, check=True
    )
    status, kilobytes = map(int, measured.stdout.split())
    assert status == 0
    # Live output that nobody read was once kept: 700 MB.
    assert kilobytes < 200_000


def test_a_slow_reader_holds_the_command_back_and_loses_nothing() -> None:
    with running("run", "-q", *SH, "head -c 3000000 /dev/zero; echo end") as program:
        assert program.process.stdout is not None
        total = 0
        while chunk := program.process.stdout.read(50_000):
            total += len(chunk)
        assert program.process.wait(BOUND) == 0
    assert total == 3_000_004


@pytest.mark.parametrize(
    "words, status",
    [
        (("--", "true"), 0),
        ((*SH, "exit 124"), 124),
        ((*SH, "kill -9 $$"), 137),
        ((*SH, "kill -TERM $$"), 143),
        (("--timeout", "0.2", "--", "sleep", "613"), 124),
        (("--timeout", "nan", "--", "true"), 125),
        (("--timeout", "0", "--", "true"), 125),
        (("--timeout=-1", "--", "true"), 125),
        (("--timeout", "inf", "--", "true"), 125),
        (("--kill-after", "nan", "--", "true"), 125),
        (("--kill-after=-1", "--", "true"), 125),
        (("--output-limit=-1", "--", "true"), 125),
        (("--cwd", "/nowhere", "--", "true"), 125),
        (("--cwd", "/etc/passwd", "--", "true"), 125),
        (("--stdin", "/nowhere", "--", "true"), 125),
        (("--watch-writes", "/nowhere", "--", "true"), 125),
        (("--report", "/nowhere/report", "--", "true"), 125),
        (("--report", "/", "--", "true"), 125),
        (("--", "/etc/passwd"), 126),
        (("--", "/"), 126),
        (("--", "no-such-command"), 127),
        (("--", "/no/such/command"), 127),
        (("--", ""), 125),
        (("--timeout", "soon", "--", "true"), 2),
        (("--leftovers", "nobody-knows", "--", "true"), 2),
        (("--env", "NAME", "--", "true"), 2),
        (("--env", "=value", "--", "true"), 2),
        (("--json", "--events", "--", "true"), 2),
        (("--no-such-option", "--", "true"), 2),
        ((), 2),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else str(value),
)
def test_the_exit_status_says_what_happened_and_one_line_says_why(words: tuple[str, ...], status: int) -> None:
    done = toolrun("run", *words)
    assert done.status == status
    assert done.err.startswith(b"toolrunner: ")
    assert done.err.count(b"\n") == 1
    assert done.out == b""


def test_a_refused_command_has_left_no_trace(tmp_path: Path) -> None:
    done = toolrun("run", "--timeout", "nan", *SH, "touch ran", cwd=tmp_path)
    assert done.status == 125
    assert b"nothing was changed" in done.err
    assert not list(tmp_path.iterdir())


def test_options_end_where_the_command_begins_with_or_without_two_dashes() -> None:
    assert toolrun("run", "-q", "echo", "--json", "--timeout", "x").out == b"--json --timeout x\n"
    assert toolrun("run", "-q", "--", "echo", "--", "-h").out == b"-- -h\n"


def test_quiet_says_nothing_of_a_command_that_came_to_its_own_end() -> None:
    assert toolrun("run", "-q", "true").err == b""
    assert toolrun("run", "--quiet", "false").err == b""
    late = toolrun("run", "--quiet", "--timeout", "0.1", "--", "sleep", "613")
    assert b"over its time limit" in late.err
    assert b"no such command" in toolrun("run", "-q", "no-such-command").err


# Input.


def test_input_that_is_no_terminal_passes_to_the_command() -> None:
    assert toolrun("run", "-q", "--", "sort", "-r", stdin=b"1\n2\n").out == b"2\n1\n"


@pytest.mark.case("P54")
def test_with_stdin_null_a_command_that_reads_goes_on_although_ours_stays_open() -> None:
    with running("run", "-q", "--stdin", "null", *SH, "cat; echo done", stdin=subprocess.PIPE) as program:
        assert program.read_until(b"done\n") == b"done\n"
        assert program.process.wait(BOUND) == 0


def test_stdin_may_be_a_file_or_a_pipe_with_a_name(tmp_path: Path) -> None:
    (tmp_path / "null").write_bytes(b"\xffin\n")
    assert toolrun("run", "-q", "--stdin", "./null", "--", "cat", cwd=tmp_path).out == b"\xffin\n"
    os.mkfifo(tmp_path / "fifo")
    with running("run", "-q", "--stdin", "fifo", "--", "cat", cwd=tmp_path) as program:
        (tmp_path / "fifo").write_bytes(b"through\n")
        assert program.done().out == b"through\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_we_were_started_without_is_taken_for_empty_and_never_for_another_file(closed: str, tmp_path: Path) -> None:
    script = f'"$0" -m toolrunner run --report report -- sh -c "cat; readlink /proc/self/fd/0 >&2; echo x" {closed}'
    subprocess.run(
        ["sh", "-c", script, sys.executable], cwd=tmp_path, env=environment(), capture_output=True, timeout=BOUND, check=True
    )
    result = json.loads((tmp_path / "report").read_text())
    assert result["outcome"] == "succeeded"
    assert result["process"]["stdout"] == "x\n"
    if "<" in closed:
        assert result["process"]["stderr"] == "/dev/null\n"


# Settings of the command.


@pytest.mark.case("P55")
def test_git_finds_no_editor_to_wait_for(tmp_path: Path) -> None:
    script = "git init -q . && git config user.email a@example.org && git config user.name a && git commit --allow-empty"
    env = {
        name: value for name, value in environment(HOME=str(tmp_path)).items() if name not in ("EDITOR", "VISUAL", "GIT_EDITOR")
    }
    done = toolrun("run", "--timeout", "20", *SH, script, cwd=tmp_path, env=env)
    assert done.status == 1
    assert b"Aborting commit" in done.err
    given = toolrun("run", "-q", "--env", "GIT_EDITOR=mine", "--env", "A=", *SH, 'echo "$GIT_EDITOR${A-unset}"')
    assert given.out == b"mine\n"


def test_values_of_env_are_in_no_record_but_their_names_are() -> None:
    done = toolrun("run", "--json", "--env", "TOKEN=hush-hush", "--", "true")
    assert b"hush" not in done.out
    assert done.result["arguments"] == {"argv": ["true"], "env": ["TOKEN"], "stdin": "inherit"}


def test_changed_files_are_named_and_nobody_looked_is_no_empty_list(tmp_path: Path) -> None:
    script = "echo hello > greeting.txt; printf x > $(printf '\\377')"
    done = toolrun("run", "--json", "--watch-writes", ".", *SH, script, cwd=tmp_path)
    assert sorted(done.result["files_changed"]) == [f"{tmp_path}/\\xff", f"{tmp_path}/greeting.txt"]
    assert toolrun("run", "--json", "--", "true").result["files_changed"] is None
    told = toolrun("run", "--watch-writes", ".", *SH, "echo more >> greeting.txt", cwd=tmp_path)
    assert b"greeting.txt (modified)" in told.err


def test_a_small_output_limit_bounds_the_result_and_not_what_is_passed_on(tmp_path: Path) -> None:
    done = toolrun("run", "--output-limit", "10", "--report", "r.json", *SH, "seq 1000", cwd=tmp_path)
    assert done.out == b"".join(b"%d\n" % number for number in range(1, 1001))
    process = json.loads((tmp_path / "r.json").read_text())["process"]
    assert process["truncated"]
    assert process["stdout_bytes"] == len(done.out)
    assert process["stdout"].startswith("1\n2\n3")


def test_words_that_are_no_utf8_arrive_as_they_are_and_are_recorded_exactly() -> None:
    done = toolrun("run", "-q", "--", "printf", "%s", b"\xff\xfe")
    assert done.out == b"\xff\xfe"
    told = toolrun("run", "--json", "--env", b"A=\xfd", *SH, 'printf %s "$A$0" | od -An -tx1', b"\xff")
    assert told.result["process"]["stdout"] == " fd ff\n"
    assert told.result["arguments"]["argv"][-1] == {"base64": base64.b64encode(b"\xff").decode()}
    missing = toolrun("run", "--json", "--", b"no\xff")
    assert missing.status == 127
    assert missing.result["error"]["kind"] == "not_found"
