"""`run --tty`: the command at a terminal of its own, the person at ours, and our terminal as it was afterwards."""

import fcntl
import os
import re
import signal
import struct
import termios
import time
from typing import Any

import pytest
from cli.program import BOUND, Terminal, at_terminal, running, toolrun
from liveness import survivors_now, unique_duration

SH = ("--", "sh", "-c")
ESCAPE = b"\x1d\x1d\x1d"


def modes(terminal: Terminal) -> list[Any]:
    return termios.tcgetattr(terminal._master)


def resize(terminal: Terminal, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    # The kernel tells the foreground group; the program under test leads its session, but nothing made its group that.
    terminal.process.send_signal(signal.SIGWINCH)


def test_off_a_terminal_the_command_has_one_all_the_same() -> None:
    done = toolrun("run", "--tty", *SH, "test -t 1 && test -t 2 && stty size <&1; cat; echo end >&2", stdin=b"piped\n")
    assert done.status == 0
    assert done.out == b"24 80\r\npiped\nend\r\n".replace(b"piped\n", b"piped\r\n")
    result = toolrun("run", "--tty", "--json", *SH, "echo out; echo err >&2").result
    assert (result["process"]["stdout"], result["process"]["stderr"]) == ("out\r\nerr\r\n", "")
    assert result["arguments"]["tty"] is True


def test_keys_go_to_the_command_and_our_terminal_is_as_it_was() -> None:
    with at_terminal("run", "--tty", *SH, "read -p 'name? ' name; echo hello $name; exit 3") as terminal:
        before = modes(terminal)
        terminal.shows("all keys go to sh; Ctrl-] three times")
        terminal.shows("name? ")
        assert not modes(terminal)[3] & termios.ICANON
        terminal.press(b"you\r")
        terminal.shows("hello you")
        status, shown = terminal.end()
        assert modes(terminal) == before
    assert status == 3
    assert "\r\ntoolrunner: command failed; exit status 3" in re.sub(r"\x1b\[\d+m", "", shown)


def test_ctrl_c_is_a_key_of_the_command() -> None:
    with at_terminal(
        "run", "--tty", "-q", *SH, "trap 'echo its own; exit 7' INT; echo ready; while :; do sleep .05; done"
    ) as terminal:
        terminal.shows("ready")
        terminal.press(b"\x03")
        terminal.shows("its own")
        status, shown = terminal.end()
    assert status == 7
    assert "SIGINT" not in shown


def test_the_command_hears_of_a_new_size() -> None:
    with at_terminal("run", "--tty", *SH, "trap 'stty size; exit' WINCH; echo ready; while :; do sleep .05; done") as terminal:
        resize(terminal, 24, 80)
        terminal.shows("ready")
        resize(terminal, 17, 53)
        terminal.shows("17 53")
        assert terminal.end()[0] == 0


def test_the_escape_stops_it_and_the_second_one_kills() -> None:
    marker = unique_duration()
    script = f"trap '' TERM INT; echo ready; sleep {marker}; sleep {marker}"
    with at_terminal("run", "--tty", "--kill-after", "600", *SH, script) as terminal:
        before = modes(terminal)
        terminal.shows("ready")
        terminal.press(ESCAPE)
        terminal.shows("600 s at most; press Ctrl-] three times again to kill it now\r\n")
        terminal.press(ESCAPE)
        status, shown = terminal.end()
        assert modes(terminal) == before
    assert status == 130
    assert re.search(r"SIGINT then SIGINT|SIGINT then SIGKILL", shown)
    assert survivors_now(marker) == []


def test_the_escape_is_heard_while_the_command_reads_nothing() -> None:
    with at_terminal("run", "--tty", *SH, "stty raw -echo; echo ready; sleep 600") as terminal:
        terminal.shows("ready")
        for _ in range(40):
            terminal.press(b"x" * 1000)
            time.sleep(0.005)  # for us to take them: our terminal's own input is small
        terminal.press(ESCAPE)
        status, _ = terminal.end()
    assert status == 130


@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["TERM", "HUP"])
def test_a_signal_stops_it_as_ever(number: signal.Signals, status: int) -> None:
    with at_terminal("run", "--tty", *SH, "echo ready; sleep 600") as terminal:
        before = modes(terminal)
        terminal.shows("ready")
        terminal.process.send_signal(number)
        assert terminal.end()[0] == status
        assert modes(terminal) == before


def test_the_third_signal_leaves_at_once_and_still_puts_the_terminal_back() -> None:
    marker = unique_duration()
    with at_terminal("run", "--tty", "--kill-after", "600", *SH, f"trap '' TERM INT HUP; echo ready; sleep {marker}") as terminal:
        before = modes(terminal)
        terminal.shows("ready")
        # All at once: they are taken one after the other, before anything that they ask for is over.
        os.kill(terminal.process.pid, signal.SIGSTOP)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            os.kill(terminal.process.pid, number)
        os.kill(terminal.process.pid, signal.SIGCONT)
        assert terminal.process.wait(BOUND) in (130, 129, 143)
        assert modes(terminal) == before
    end = time.monotonic() + BOUND
    while survivors_now(marker, rounds=1) and time.monotonic() < end:  # its keeper ends it, after us
        time.sleep(0.02)
    assert survivors_now(marker) == []


def test_a_refused_command_leaves_the_terminal_alone() -> None:
    with at_terminal("run", "--tty", "--cwd", "/nowhere-at-all", "true") as terminal:
        before = modes(terminal)
        assert terminal.end()[0] == 125
        assert modes(terminal) == before


def test_the_output_of_a_terminal_program_can_be_redirected() -> None:
    with running("run", "--tty", *SH, "printf last") as program:
        done = program.done()
    assert (done.status, done.out) == (0, b"last")
