"""Stopping a contained command: nothing survives at any moment of its start, and its handlers run in the grace."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from liveness import survivors, survivors_now, unique_duration
from sandbox.running import BOUND, Box

from toolrunner.facts import Containment
from toolrunner.process import EndCause

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

DELAYS = range(41)
"""Milliseconds after the release: bwrap sets itself up in the first 5 to 40, and orphans of it are born there."""


@pytest.mark.case("X1")
@pytest.mark.parametrize("grace", [0.0, 5.0], ids=["killed", "asked"])
async def test_nothing_survives_a_stop_at_any_moment_of_the_start(box: Box, grace: float) -> None:
    marks, started = [], 0
    for delay in random.sample(DELAYS, len(DELAYS)):
        marks.append(unique_duration())
        with anyio.fail_after(BOUND):
            prepared = await box.prepare("offline", f"setsid sleep {marks[-1]} & sleep {marks[-1]}")
            prepared.go()
            await anyio.sleep(delay / 1000)  # the moment is what is tried out
            prepared.stop(grace=grace)
            end = await prepared.wait()
        assert end.still_running == ()
        assert end.cause in (EndCause.STOPPED, EndCause.SPAWN_FAILED), end
        assert survivors_now(marks[-1], rounds=1, apart=0) == []
        started += end.started
    assert started > 0
    for mark in marks:
        assert survivors_now(mark, rounds=1, apart=0) == []


async def test_a_stop_before_the_release_is_proof_that_nothing_ran(box: Box) -> None:
    for _ in range(20):
        prepared = await box.prepare("offline", "echo ran > marker")
        await prepared.abandon()
        end = await prepared.wait()
        assert not end.started
    assert not (box.folder / "marker").exists()


@pytest.mark.case("X4")
async def test_a_handler_of_the_command_runs_in_the_grace_and_its_status_is_kept(box: Box) -> None:
    ready = anyio.Event()
    script = "trap 'echo cleaned > cleaned; exit 7' TERM; echo up; while :; do sleep 0.05; done"
    with anyio.fail_after(BOUND):
        prepared = await box.prepare("workspace-write", script, on_output=lambda _stream, _data: ready.set(), kill_after=BOUND)
        prepared.go()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepared.wait)
            await ready.wait()
            prepared.stop()
        end = await prepared.wait()
    assert (box.folder / "cleaned").read_text() == "cleaned\n"
    assert (end.cause, end.facts.exit_code, end.signals) == (EndCause.STOPPED, 7, ("SIGTERM",))
    assert end.still_running == ()


@pytest.mark.case("X26", "X27")
@pytest.mark.parametrize("how", ["exits", "runs out of time"])
async def test_daemons_end_with_their_call_however_it_ends(box: Box, how: str) -> None:
    mark = unique_duration()
    daemons = f"(setsid sleep {mark} >/dev/null 2>&1 &); for i in 1 2 3; do (trap '' TERM HUP INT; sleep {mark} &) & done; "
    script = daemons + ("exit 5" if how == "exits" else f"sleep {mark}")
    end = await box.run("workspace-write", script, timeout=None if how == "exits" else 0.5, kill_after=0.2)
    assert end.still_running == ()
    assert await survivors(mark) == []
    assert end.facts.containment is Containment.PIDNS
    if how == "exits":
        assert (end.cause, end.facts.exit_code, end.facts.leftovers) == (EndCause.EXITED, 5, ())
    else:
        assert end.cause is EndCause.TIMED_OUT


@pytest.mark.case("P42")
async def test_a_contained_command_cannot_hit_the_host_by_a_pattern_or_by_number(box: Box) -> None:
    mark = f"toolrunner-host-{os.getpid()}"
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()", mark], stdin=subprocess.PIPE) as host:
        end = await box.run("workspace-write", f"pkill -9 -f {mark}; kill -9 {host.pid}; kill -9 -1; true")
        assert host.poll() is None
        assert end.still_running == ()
        assert host.stdin is not None
        host.stdin.close()
    again = await box.run("workspace-write", "echo fine")
    assert again.facts.stdout == "fine\n"


@pytest.mark.case("P79")
async def test_a_contained_command_finds_no_supervisor_to_attack(box: Box) -> None:
    mark = unique_duration()
    attack = (
        "kill -9 $PPID; kill -STOP $PPID; for p in /proc/[0-9]*; do n=${p##*/}; [ $n = $$ ] || kill -9 $n; done 2>/dev/null; "
        f"ls /proc | grep -c '^[0-9]'; grep -l tr- /proc/*/comm; (setsid sleep {mark} &); exit 3"
    )
    end = await box.run("workspace-write", attack)
    assert (end.started, end.cause, end.facts.exit_code) == (True, EndCause.EXITED, 3), end
    assert end.missing == ()
    assert int(end.facts.stdout.split()[0]) < 10, "it sees its own namespace only"
    assert "comm" not in end.facts.stdout
    assert await survivors(mark) == []


async def test_a_keeper_that_is_killed_from_outside_leaves_nothing_of_a_contained_call(box: Box) -> None:
    mark = unique_duration()
    with anyio.fail_after(BOUND):
        ready = anyio.Event()
        script = f"(setsid sleep {mark} &); echo up; sleep {mark}"
        prepared = await box.prepare("workspace-write", script, on_output=lambda _stream, _data: ready.set())
        assert prepared.identity is not None
        keeper = int(Path(f"/proc/{prepared.identity.pid}/stat").read_text().rpartition(")")[2].split()[1])
        prepared.go()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepared.wait)
            await ready.wait()
            os.kill(keeper, signal.SIGKILL)
        end = await prepared.wait()
    assert end.cause is EndCause.KEEPER_LOST
    assert await survivors(mark) == []


async def test_a_wrapper_that_is_killed_from_outside_is_no_proof_that_its_command_never_ran(box: Box) -> None:
    mark = unique_duration()
    with anyio.fail_after(BOUND):
        ready = anyio.Event()
        script = f"echo ran > made; echo up; sleep {mark}"
        prepared = await box.prepare("workspace-write", script, on_output=lambda _stream, _data: ready.set())
        assert prepared.identity is not None
        prepared.go()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepared.wait)
            await ready.wait()
            os.kill(prepared.identity.pid, signal.SIGKILL)
        end = await prepared.wait()
    assert (box.folder / "made").exists()
    assert (end.started, end.cause, end.facts.signal, end.spawn_error) == (True, EndCause.EXITED, "SIGKILL", None)
    assert await survivors(mark) == []


async def test_a_time_that_is_up_before_the_command_began_is_told_as_that(box: Box) -> None:
    end = await box.run("workspace-write", "echo ran > made", timeout=1e-6)
    assert not end.started
    assert not (box.folder / "made").exists()
    assert end.spawn_error is not None
    assert end.spawn_error.message == "profile workspace-write: its time was up before bubblewrap had started the command"
