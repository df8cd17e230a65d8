"""`toolrunner chat` and the modes of its terminal: what it changed is put back, also when it leaves at once."""

import signal
import sys
import termios
from pathlib import Path

import psutil
import pytest
from agent.anthropic_words import START, text
from agent.loopback import Hang, provider_in_thread
from cli.program import Terminal, at_terminal

pytest.importorskip("anthropic", reason="needs the extra agent")

pytestmark = [pytest.mark.processes, pytest.mark.skipif(sys.platform != "linux", reason="a pty, and /proc")]

# A shell leads the session: when the leader itself goes, the kernel puts a terminal's first modes back.
SHELL = ("sh", "-c", '"$@"; echo "left with $?"; read line', "sh")


def is_by_lines(terminal: Terminal) -> bool:
    flags: int = termios.tcgetattr(terminal._master)[3]
    return flags & (termios.ICANON | termios.ECHO) == termios.ICANON | termios.ECHO


def test_leaving_at_once_gives_the_terminal_its_modes_back(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    env = {"XDG_STATE_HOME": str(state), "ANTHROPIC_API_KEY": "k"}
    with provider_in_thread([START, *text("One, ", closed=False), Hang()]) as served:
        about = ("--provider", "anthropic", "--model", "claude-test", "--base-url", served.url, "--root", str(tmp_path))
        with at_terminal("chat", *about, env=env, before=SHELL) as terminal:
            terminal.shows("Ctrl-D leaves")
            terminal.press(b"count\n")
            terminal.shows("One, ")
            assert not is_by_lines(terminal)
            (chat,) = psutil.Process(terminal.process.pid).children()
            # Pending all at once, so that the turn has no time to end between the first and the third.
            for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCONT):
                chat.send_signal(number)
            terminal.shows("left with 1")
            assert is_by_lines(terminal)
