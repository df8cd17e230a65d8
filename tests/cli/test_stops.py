"""Stopping `toolrunner`: time limits, signals, readers that leave, and its own violent death. None of them leaves anything."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli.program import BOUND, PROGRAM, environment, read_until, running, toolrun
from cli.schema_check import problems
from liveness import Lifeline, survivors_now, unique_duration

from toolrunner.results import schema

SH = ("--", "sh", "-c")


@pytest.fixture
def marker() -> str:
    return unique_duration()


def escapees(marker: str) -> str:
    """The issue's own shape: one in a session, one in a group of its own, and a shell that waits."""
    return f"setsid sleep {marker} & timeout 900 sleep {marker}; true"


def test_a_time_limit_ends_everything_in_about_its_time(marker: str) -> None:
    start = time.monotonic()
    done = toolrun("run", "--timeout", "1", *SH, escapees(marker))
    assert done.status == 124
    assert time.monotonic() - start < 8  # 1 s and two starts of Python, on a machine that may be busy; wrong would be 613 s
    assert survivors_now(marker) == []
    assert b"nothing left running" in done.err


@pytest.mark.case("P67")
def test_killed_outright_in_the_middle_it_leaves_nothing(marker: str, tmp_path: Path) -> None:
    with Lifeline(tmp_path) as line, running("run", "--timeout", "600", *SH, f"{line.sh}; {escapees(marker)}") as program:
        line.wait_opened()
        program.process.kill()
        program.process.wait(BOUND)
        line.wait_gone()
    assert survivors_now(marker) == []


@pytest.mark.case("P8")
@pytest.mark.parametrize(
    "number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["INT", "TERM", "HUP"]
)
def test_a_signal_to_the_host_alone_stops_the_command_and_its_children(
    number: signal.Signals, status: int, marker: str, tmp_path: Path
) -> None:
    with (
        Lifeline(tmp_path) as line,
        running("run", "--report", "r.json", *SH, f"{line.sh}; {escapees(marker)}", cwd=tmp_path) as program,
    ):
        line.wait_opened()
        program.send(number)
        done = program.done()
        assert line.is_gone()
    assert done.status == status
    assert survivors_now(marker) == []
    result = json.loads((tmp_path / "r.json").read_text())
    assert (result["outcome"], result["code"], result["ended"]) == ("aborted", "ABORTED", "stopped")
    assert result["stop"]["reason"] == number.name
    assert result["stop"]["signals"][0] == "SIGTERM"
    assert result["still_running"] == []
    assert b"toolrunner: command was stopped" in done.err


def test_a_command_that_ends_cleanly_at_the_stop_is_still_a_stopped_one(tmp_path: Path) -> None:
    script = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    with running("run", "--json", *SH, script) as program:
        # Nothing is passed through with --json: look for the shell itself.
        wait_for_start(program.process.pid)
        program.send(signal.SIGINT)
        done = program.done()
    assert done.status == 130
    assert done.result["outcome"] == "aborted"
    assert done.result["process"]["exit_code"] == 0
    assert done.result["process"]["stdout"].endswith("cleaned\n")


def wait_for_start(host: int) -> None:
    """Wait until `host` has a supervised command. Its keepers are its warden's children, the command is theirs."""
    end = time.monotonic() + BOUND
    while time.monotonic() < end:
        listing = subprocess.run(["ps", "-e", "-o", "ppid=,pid=,args="], capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 2) for line in listing.splitlines()]
        below = {str(host)}
        for _ in range(4):
            below |= {pid for parent, pid, *_ in rows if parent in below}
        if any(pid in below and args and args[0].startswith("sleep 0.05") for _, pid, *args in rows):
            return
        time.sleep(0.02)
    raise TimeoutError("the command did not start")


def test_the_second_signal_kills_at_once_what_ignores_the_first(marker: str, tmp_path: Path) -> None:
    script = f"trap '' TERM INT HUP; echo ready; sleep {marker} & sleep {marker}"
    with running("run", "--kill-after", "600", "--report", "r.json", *SH, script, cwd=tmp_path) as program:
        program.read_until(b"ready\n")
        program.send(signal.SIGTERM)
        wait_for_signal_taken(program.process.pid)
        assert program.process.poll() is None
        start = time.monotonic()
        program.send(signal.SIGTERM)
        done = program.done()
    assert time.monotonic() - start < 10  # not the 600 s of the grace period
    assert done.status == 143
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["stop"]["signals"] == ["SIGTERM", "SIGKILL"]
    assert result["stop"]["escalated"]
    assert survivors_now(marker) == []


def wait_for_signal_taken(pid: int) -> None:
    """Wait until no signal is pending for the process: two pending ones of a kind would be one (signal(7))."""
    end = time.monotonic() + BOUND
    while time.monotonic() < end:
        status = Path(f"/proc/{pid}/status").read_text()
        pending = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
        if not any(pending):
            time.sleep(0.3)  # a test of time: taken by the interpreter is not yet taken by its loop
            return
        time.sleep(0.005)
    raise TimeoutError("the signal was not taken")


def test_signals_that_were_ignored_at_the_start_stay_ignored() -> None:
    script = "trap '' HUP INT; exec \"$@\""
    words = ("sh", "-c", script, "sh", *PROGRAM, "run", "-q", *SH, "echo ready; read line; echo $line")
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), start_new_session=True
    ) as process:  # what nohup does, and what shells do for their background jobs
        assert process.stdin is not None
        assert process.stdout is not None
        read_until(process.stdout.fileno(), b"ready\n")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGINT)
        process.stdin.write(b"on\n")
        process.stdin.close()
        assert process.stdout.read() == b"on\n"
        assert process.wait(BOUND) == 0


@pytest.mark.parametrize("form", ["--quiet", "--events"])
def test_a_reader_that_leaves_stops_the_command(form: str, marker: str) -> None:
    script = f"setsid sleep {marker} & while :; do echo line; sleep 0.01; done"
    with running("run", form, *SH, script) as program:
        program.read_until(b"\n")
        assert program.process.stdout is not None
        program.process.stdout.close()
        program.process.stdout = None
        done = program.done()
    assert done.status == 130
    assert b"Broken pipe" in done.err
    assert b"Traceback" not in done.err
    assert survivors_now(marker) == []


def test_in_a_pipeline_yes_ends_with_its_reader() -> None:
    script = f"{sys.executable} -m toolrunner run -q -- yes | head -1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, env=environment(), timeout=BOUND, check=True)
    assert done.stdout == b"y\n"


@pytest.mark.parametrize("insist", [False, True], ids=["by its time limit", "by two signals"])
def test_a_reader_that_neither_reads_nor_leaves_cannot_keep_us(insist: bool, marker: str) -> None:
    words = () if insist else ("--timeout", "2")
    with running("run", *words, *SH, f"sleep {marker} & yes", stderr=subprocess.DEVNULL) as program:
        assert program.process.stdout is not None
        program.read_until(b"y\n")
        if insist:
            program.send(signal.SIGTERM)
            wait_for_signal_taken(program.process.pid)
            if program.process.poll() is None:
                program.send(signal.SIGTERM)
        assert program.process.wait(BOUND) == (143 if insist else 124)
    assert survivors_now(marker) == []


def test_a_result_that_nobody_reads_cannot_keep_us_once_somebody_insists() -> None:
    with running("run", "--json", *SH, "head -c 900000 /dev/zero | tr '\\0' x") as program:
        program.read_until(b"{")  # its line has begun and is longer than a pipe: all is over but this
        assert program.process.poll() is None
        program.send(signal.SIGTERM)
        assert program.process.wait(BOUND) == 74
        assert program.process.stderr is not None
        assert b"the result cannot be written to standard output: nobody reads it" in program.process.stderr.read()


@pytest.mark.case("P41")
def test_the_command_is_never_in_our_process_group() -> None:
    with running("run", *SH, "ps -o pgid= -p $$; ps -o pgid= -p $PPID; sleep 613") as program:
        own = os.getpgid(program.process.pid)
        groups = program.read_until(b"\n").split()
        program.send(signal.SIGTERM)
        done = program.done()
    assert done.status == 143
    assert groups
    assert all(int(group) != own for group in groups)


@pytest.mark.case("P42")
def test_a_tool_that_signals_whatever_holds_its_words_hits_the_host_and_not_the_supervisor(marker: str) -> None:
    # What `pkill -f WORDS` does, written out: the host has the words in its arguments, keeper and warden must not.
    hunter = f"""
import os, signal
for pid in map(int, filter(str.isdigit, os.listdir('/proc'))):
    try:
        words = open(f'/proc/{{pid}}/cmdline', 'rb').read()
    except OSError:
        continue
    if b'{marker}' in words and pid not in (os.getpid(), os.getppid()):
        os.kill(pid, signal.SIGTERM)
import time; time.sleep(600)
"""
    with running("run", "--json", "--", sys.executable, "-c", hunter) as program:
        done = program.done()
    # The host was asked to stop and did, in order: had the supervisor been hit, the result would say KEEPER_LOST.
    assert done.status == 143
    assert done.result["code"] == "ABORTED"
    assert done.result["still_running"] == []
    assert problems(done.result, schema()) == []
    assert survivors_now(marker) == []
