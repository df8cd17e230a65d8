"""The program at a terminal: what a person sees, what keys do, and that foreign text cannot play with the screen."""

import re
import subprocess
import time
from pathlib import Path

import pytest
from cli.program import at_terminal
from liveness import survivors_now, unique_duration

SH = ("--", "sh", "-c")
ESCAPES = re.compile(r"\x1b\[[0-9;]*[mK]")


def test_the_report_stands_on_a_line_of_its_own_with_the_summary_first() -> None:
    with at_terminal("run", *SH, "printf 'no line end'; exit 3") as terminal:
        status, shown = terminal.end()
    assert status == 3
    lines = ESCAPES.sub("", shown).splitlines()
    assert lines[0] == "no line end"
    assert lines[1].startswith("toolrunner: command failed; exit status 3;")
    assert "\x1b[" in shown


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_there_is_no_colour_where_none_is_wanted(env: dict[str, str]) -> None:
    with at_terminal("run", "true", env=env) as terminal:
        _, shown = terminal.end()
    assert "toolrunner: command succeeded" in shown
    assert "\x1b" not in shown


def test_ctrl_c_says_what_is_waited_for_and_the_second_one_kills() -> None:
    marker = unique_duration()
    script = f"trap '' TERM INT; echo ready; sleep {marker} & sleep {marker}"
    with at_terminal("run", "--kill-after", "600", *SH, script) as terminal:
        terminal.shows("ready")
        terminal.press(b"\x03")
        said = terminal.shows("again to kill it now")
        assert re.search(r"toolrunner: SIGINT: stopping sh \(pid \d+\), 600 s at most; press Ctrl-C again", said)
        terminal.shows("still waiting for sh (pid")
        terminal.press(b"\x03")
        status, shown = terminal.end()
    assert status == 130
    assert "SIGINT again: killing sh" in shown
    assert "SIGTERM then SIGKILL" in shown
    assert survivors_now(marker) == []


@pytest.mark.case("P54")
def test_a_command_that_reads_finds_the_terminal_empty_and_goes_on() -> None:
    with at_terminal("run", "-q", *SH, "cat; echo done") as terminal:
        status, shown = terminal.end()
    assert (status, shown) == (0, "done\r\n")


def test_with_stdin_inherit_the_command_reads_the_terminal() -> None:
    with at_terminal("run", "-q", "--stdin", "inherit", *SH, "echo ready; read line; echo got $line") as terminal:
        terminal.shows("ready")
        terminal.press(b"hello\n")
        terminal.shows("got hello")
        assert terminal.end()[0] == 0


def test_with_json_a_person_is_told_of_the_wait_and_standard_output_stays_one_line() -> None:
    script = "trap '' TERM; while :; do sleep 0.05; done"
    with at_terminal("run", "--json", "--kill-after", "1", *SH, script, stdout=subprocess.PIPE) as terminal:
        terminal_out = terminal.process.stdout
        assert terminal_out is not None
        # No output passes, so the first thing that can be seen is the answer to the key: press until it is heard.
        wait_until_listening(terminal.process.pid)
        terminal.press(b"\x03")
        terminal.shows("SIGINT: stopping sh")
        terminal.end()
        out = terminal_out.read()
        terminal_out.close()
    assert out.count(b"\n") == 1
    assert b'"outcome":"aborted"' in out


def wait_until_listening(pid: int) -> None:
    """Wait until the process has a child: by then it takes signals, because that is the first thing it does."""
    end = time.monotonic() + 30
    while not Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        assert time.monotonic() < end
        time.sleep(0.01)


HOSTILE = "a\x1b]0;owned\x07\x1b[2J\u202etxt.[bold red]x"


def test_names_that_a_command_chose_cannot_play_with_the_screen(tmp_path: Path) -> None:
    with at_terminal("run", "--watch-writes", ".", "--", "touch", HOSTILE, cwd=tmp_path, env={"NO_COLOR": "1"}) as terminal:
        status, shown = terminal.end()
    assert status == 0
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
    flat = "".join(shown.split())
    assert r"a\x1b]0;owned\x07\x1b[2J\u202etxt.[boldred]x" in flat
    with at_terminal("run", "--", "no\x1b[2Jsuch", env={"NO_COLOR": "1"}) as terminal:
        status, shown = terminal.end()
    assert status == 127
    assert "\x1b" not in shown


def test_a_bad_option_cannot_either() -> None:
    with at_terminal("run", "--\x1b[2J\u202e", "true") as terminal:
        status, shown = terminal.end()
    assert status == 2
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_a_long_batch_tells_how_far_it_is_and_takes_the_line_back(tmp_path: Path) -> None:
    (tmp_path / "calls").write_text(
        '{"name":"shell","arguments":{"command":"sleep 4"}}\n{"name":"shell","arguments":{"command":"true"}}\n'
    )
    with at_terminal("batch", "calls", cwd=tmp_path, stdout=subprocess.DEVNULL) as terminal:
        terminal.shows("0 of 2 done after")
        terminal.shows("running: shell")
        status, shown = terminal.end()
    assert status == 0
    assert shown.endswith("\r\x1b[K")


def test_doctor_and_schema_read_well_at_a_terminal() -> None:
    with at_terminal("doctor", env={"COLUMNS": "80"}) as terminal:
        status, shown = terminal.end()
    assert status == 0
    assert "kill_tree" in shown
    assert "\x1b[" in shown
