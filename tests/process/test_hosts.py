"""Hosts that are interrupted, killed, stopped, or forked while a tool runs: everything the tool started goes with them."""

import os
import signal
import time
from pathlib import Path

import kernel
import pytest
from liveness import Lifeline, survivors_now, unique_duration
from process.host import Host, host_running

GONE = 3.0
"""Seconds: the cases ask for 1, a machine with every core busy may need more, and a leak would last for minutes."""

TOOL = """
async def main(supervisor):
    await shell(supervisor, {script!r}, on_output=lambda stream, data: say('up'), **{plan!r})
"""


def tool(line: Lifeline, rest: str, **plan: object) -> str:
    return TOOL.format(script=f"{line.sh}; {rest}", plan=plan)


def supervisors(host: Host) -> list[int]:
    """Warden, then keepers: the descendants of the host that carry our name."""
    return [seen.pid for seen in kernel.descendants(host.pid) if seen.command.startswith("tr-")]


@pytest.mark.case("P8")
def test_an_interrupt_of_the_host_alone_ends_the_tool(tmp_path: Path) -> None:
    duration = unique_duration()
    with Lifeline(tmp_path) as line, host_running(tmp_path, tool(line, f"echo up; sleep {duration}; true")) as host:
        assert host.line() == "up"
        os.kill(host.pid, signal.SIGINT)
        status, _ = host.rest()
        assert status != 0
        line.wait_gone(GONE)
    assert survivors_now(duration) == []


@pytest.mark.case("P67")
def test_a_host_that_is_killed_takes_everything_with_it(tmp_path: Path) -> None:
    duration = unique_duration()
    script = f"trap '' TERM; setsid sleep {duration} & env -i setsid -f sleep {duration}; echo up; sleep {duration}"
    with Lifeline(tmp_path) as line, host_running(tmp_path, tool(line, script)) as host:
        assert host.line() == "up"
        wardens = supervisors(host)
        os.kill(host.pid, signal.SIGKILL)
        line.wait_gone(GONE)
        wait_gone(wardens)
    assert survivors_now(duration) == []


def wait_gone(pids: list[int], bound: float = GONE) -> None:
    """Warden and keepers leave as well. They are no children of ours, so this polls."""
    assert pids
    end = time.monotonic() + bound
    while any((seen := kernel.look(pid)) and not kernel.is_dying(seen) for pid in pids):
        assert time.monotonic() < end, f"still there: {[kernel.look(pid) for pid in pids]}"
        time.sleep(0.005)


FORKED = """
import ctypes
async def main(supervisor):
    def up(stream, data):
        if {by_python}:
            child = os.fork()
        else:  # as a C library would: no hook of Python's runs, every descriptor stays open in the copy
            child = ctypes.CDLL(None).fork()
        if child == 0:
            ctypes.CDLL(None).pause()
            os._exit(0)
        say(child)
    await shell(supervisor, {script!r}, on_output=up)
"""


@pytest.mark.case("P81")
@pytest.mark.parametrize("by_python", [True, False])
def test_a_host_that_is_killed_while_a_forked_copy_lives_takes_its_tools_with_it(tmp_path: Path, by_python: bool) -> None:
    duration = unique_duration()
    with Lifeline(tmp_path) as line:
        body = FORKED.format(by_python=by_python, script=f"{line.sh}; setsid sleep {duration} & echo up; sleep {duration}")
        with host_running(tmp_path, body) as host:
            child = int(host.line())
            try:
                wardens = supervisors(host)
                os.kill(host.pid, signal.SIGKILL)
                line.wait_gone(GONE)
                wait_gone(wardens)
                assert kernel.look(child)
            finally:
                os.kill(child, signal.SIGKILL)
    assert survivors_now(duration) == []


@pytest.mark.case("P80")
@pytest.mark.parametrize(
    "victims", ["$PPID", "$(awk '{print $4}' /proc/$PPID/stat)", "$PPID $(awk '{print $4}' /proc/$PPID/stat)"]
)
def test_a_host_that_is_killed_while_its_supervisors_are_stopped(tmp_path: Path, victims: str) -> None:
    duration = unique_duration()
    script = f"setsid sleep {duration} & echo up; kill -STOP {victims}; sleep {duration}"
    with Lifeline(tmp_path) as line, host_running(tmp_path, tool(line, script)) as host:
        assert host.line() == "up"
        wardens = supervisors(host)
        os.kill(host.pid, signal.SIGKILL)
        line.wait_gone(GONE)
        wait_gone(wardens)
    assert survivors_now(duration) == []


@pytest.mark.case("P87")
def test_a_quit_from_the_terminal_does_not_reach_the_supervisor(tmp_path: Path) -> None:
    body = """
quits = []
signal.signal(signal.SIGQUIT, lambda *_: quits.append(1))
async def main(supervisor):
    prepared = await supervisor.prepare(LaunchPlan(('sh', '-c', 'cat; echo done'), stdin=b'x' * 1000))
    say('up')
    while not quits:
        await anyio.sleep(0.01)
    prepared.go()
    end = await prepared.wait()
    say(end.cause, end.facts.exit_code)
"""
    with host_running(tmp_path, body) as host:
        assert host.line() == "up"
        os.killpg(host.pid, signal.SIGQUIT)  # what the terminal does: to the whole foreground group
        assert host.line() == "exited 0"
        assert host.rest()[0] == 0


@pytest.mark.case("P87")
def test_everything_may_be_stopped_and_continued(tmp_path: Path) -> None:
    with Lifeline(tmp_path) as line:
        body = TOOL.format(script=f"{line.sh}; echo up; sleep 0.3; echo done", plan={"timeout": 60}).replace(
            "await shell", "end = await shell"
        )
        with host_running(tmp_path, body + "    say(end.cause, end.facts.exit_code, end.facts.stdout.split())\n") as host:
            assert host.line() == "up"
            everything = [*supervisors(host), *(seen.pid for seen in kernel.descendants(host.pid)), host.pid]
            for number in (signal.SIGSTOP, signal.SIGCONT):
                for pid in everything:
                    os.kill(pid, number)
            assert "up" in host.line()
            assert host.line() == "exited 0 ['up', 'done']"
            assert host.rest()[0] == 0
