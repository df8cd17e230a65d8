"""Signals: which are sent, to whom, how often, and what they mean for the result."""

import os
from pathlib import Path

import anyio
import pytest
from liveness import Lifeline, survivors, unique_duration
from process.shapes import BOUND, GRACE, SLACK, part, run, run_until, sh

from toolrunner.process import EndCause, LaunchPlan, Supervisor

pytestmark = pytest.mark.anyio

LONG = 50.0
"""A grace that no test waits out: an end well before it was not the kill's."""


@pytest.mark.case("P27", "P28")
async def test_a_command_that_ignores_term_is_killed_after_the_grace(supervisor: Supervisor) -> None:
    outcome = await run_until(supervisor, 'trap "" TERM INT HUP; echo part; while :; do sleep .2; done', part, grace=GRACE)
    assert outcome.end.cause is EndCause.STOPPED
    assert outcome.end.signals == ("SIGTERM", "SIGKILL")
    assert outcome.end.escalated
    assert outcome.end.facts.signal == "SIGKILL"
    delivered, ended = outcome.end.delivered_at, outcome.end.ended_at
    assert delivered is not None
    assert ended is not None
    assert GRACE <= (ended - delivered).total_seconds() < GRACE + SLACK


@pytest.mark.case("P29")
async def test_the_child_that_ignores_term_is_killed_although_the_leader_obeyed(supervisor: Supervisor) -> None:
    duration = unique_duration()
    script = f"sh -c 'trap \"\" TERM; echo part; sleep {duration}' & wait"
    outcome = await run_until(supervisor, script, part, grace=GRACE)
    assert outcome.end.signals == ("SIGTERM", "SIGKILL")
    assert outcome.end.facts.signal == "SIGTERM"
    assert GRACE <= outcome.seconds < GRACE + SLACK + 1
    assert await survivors(duration) == []


@pytest.mark.case("P30")
async def test_a_command_that_stopped_itself_is_woken_to_clean_up(supervisor: Supervisor, tmp_path: Path) -> None:
    clean, duration = tmp_path / "clean", unique_duration()
    script = f"echo part; trap 'touch {clean}; exit 0' TERM; kill -STOP $$; sleep {duration}"
    with anyio.fail_after(BOUND):
        prepared = await supervisor.prepare(LaunchPlan(sh(script), kill_after=LONG))
        prepared.go()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepared.wait)
            assert prepared.identity is not None
            stat = Path(f"/proc/{prepared.identity.pid}/stat")
            while stat.read_text().rpartition(")")[2].split()[0] != "T":  # noqa: ASYNC110 - /proc announces nothing
                await anyio.sleep(0.005)
            prepared.stop()
        end = await prepared.wait()
    assert clean.exists()
    assert end.signals == ("SIGTERM",)
    assert end.cause is EndCause.STOPPED


@pytest.mark.case("P32")
async def test_clean_up_gets_its_time_and_exit_status_0_makes_it_no_success(supervisor: Supervisor, tmp_path: Path) -> None:
    clean = tmp_path / "clean"
    script = f"trap 'sleep .1; touch {clean}; exit 0' TERM; echo part; sleep {unique_duration()} & wait"
    outcome = await run_until(supervisor, script, part, grace=LONG)
    assert clean.exists()
    assert outcome.seconds < LONG / 2
    assert outcome.end.cause is EndCause.STOPPED
    assert (outcome.end.facts.exit_code, outcome.end.signals, outcome.end.escalated) == (0, ("SIGTERM",), False)


COUNTER = """
import os, signal, time
count = 0
def term(*_):
    global count
    count += 1
    os.write(1, b'term %d\\n' % count)  # one write: two processes must not mix their lines
signal.signal(signal.SIGTERM, term)
{setup}
os.write(1, b'part\\n')
while True: time.sleep(1)
"""


@pytest.mark.case("P85")
@pytest.mark.parametrize("setup", ["", "os.fork() or os.setpgid(0, 0)", "os.fork() or os.setsid()"])
async def test_each_process_gets_term_exactly_once(supervisor: Supervisor, setup: str) -> None:
    processes = 2 if setup else 1
    outcome = await run_until(
        supervisor, ("python3", "-c", COUNTER.format(setup=setup)), lambda out: out.count(b"part") == processes, grace=GRACE
    )
    assert outcome.out.count("term 1") == processes
    assert "term 2" not in outcome.out


@pytest.mark.case("P27")
async def test_a_second_stop_shortens_the_grace_and_kills_now(supervisor: Supervisor) -> None:
    with anyio.fail_after(BOUND):
        seen = anyio.Event()

        def look(stream: str, data: bytes) -> None:
            if b"term" in data:
                seen.set()
            elif b"part" in data:
                prepared.stop()

        script = "trap 'echo term' TERM; echo part; while :; do sleep .05; done"
        prepared = await supervisor.prepare(LaunchPlan(sh(script), kill_after=600), on_output=look)
        prepared.go()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepared.wait)
            await seen.wait()
            prepared.stop(grace=600)  # no longer than it is: changes nothing
            prepared.stop(grace=0)
        end = await prepared.wait()
    assert end.signals == ("SIGTERM", "SIGKILL")
    assert end.cause is EndCause.STOPPED


async def test_a_grace_of_zero_sends_no_term(supervisor: Supervisor) -> None:
    outcome = await run_until(supervisor, "trap 'echo term' TERM; echo part; while :; do sleep .05; done", part, grace=0)
    assert outcome.end.signals == ("SIGKILL",)
    assert not outcome.end.escalated
    assert outcome.out == "part\n"


async def test_the_first_cause_wins(supervisor: Supervisor) -> None:
    """The limit comes first; a stop during its grace changes how long it takes, not why."""
    with anyio.fail_after(BOUND):
        asked = anyio.Event()

        def look(stream: str, data: bytes) -> None:
            if b"term" in data:
                prepared.stop(grace=0)
                asked.set()

        script = "trap 'echo term' TERM; while :; do sleep .05; done"
        prepared = await supervisor.prepare(LaunchPlan(sh(script), timeout=0.3, kill_after=600), on_output=look)
        prepared.go()
        end = await prepared.wait()
    assert asked.is_set()
    assert end.cause is EndCause.TIMED_OUT
    assert end.signals == ("SIGTERM", "SIGKILL")


async def test_a_stop_that_comes_after_the_end_changes_nothing(supervisor: Supervisor) -> None:
    with anyio.fail_after(BOUND):
        prepared = await supervisor.prepare(LaunchPlan(("true",)))
        prepared.go()
        end = await prepared.wait()
        prepared.stop(grace=0)
        await prepared.abandon()
        assert await prepared.wait() is end
    assert (end.cause, end.facts.exit_code, end.signals) == (EndCause.EXITED, 0, ())


async def test_stop_before_go_runs_nothing(supervisor: Supervisor, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with anyio.fail_after(BOUND):
        for _ in range(20):
            prepared = await supervisor.prepare(LaunchPlan(("touch", str(mark))))
            prepared.stop()
            prepared.go()  # too late: the gate is shut
            end = await prepared.wait()
            assert (end.started, end.cause, end.still_running) == (False, EndCause.STOPPED, ())
    assert not mark.exists()


async def test_a_stop_right_after_go_tells_the_truth_about_the_start(supervisor: Supervisor, tmp_path: Path) -> None:
    """The race is real: whichever side wins, "not started" is only said when nothing ran."""
    with anyio.fail_after(BOUND):
        for index in range(40):
            mark = tmp_path / str(index)
            prepared = await supervisor.prepare(LaunchPlan(("touch", str(mark))))
            prepared.go()
            prepared.stop(grace=index % 2)
            end = await prepared.wait()
            assert end.started
            assert end.cause in (EndCause.STOPPED, EndCause.EXITED)
            assert (end.facts.exit_code is None) != (end.facts.signal is None)
            assert (end.facts.exit_code == 0) is mark.exists() or end.cause is EndCause.STOPPED


async def test_abandon_runs_nothing_and_leaves_nothing(supervisor: Supervisor, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with anyio.fail_after(BOUND):
        for _ in range(20):
            prepared = await supervisor.prepare(LaunchPlan(("touch", str(mark))))
            with anyio.CancelScope() as scope:  # it must work from a cleanup that is itself cancelled
                scope.cancel()
                await prepared.abandon()
            if prepared.identity is not None:
                assert not Path(f"/proc/{prepared.identity.pid}").exists()
            end = await prepared.wait()
            assert not end.started
    assert not mark.exists()


async def test_a_cancelled_waiter_loses_nothing(supervisor: Supervisor) -> None:
    with anyio.fail_after(BOUND):
        prepared = await supervisor.prepare(LaunchPlan(sh("echo one; read x; echo two; exit 7"), stdin=b""))
        prepared.go()
        for _ in range(5):
            with anyio.move_on_after(0.02):
                await prepared.wait()
        end = await prepared.wait()
    assert (end.facts.stdout, end.facts.exit_code) == ("one\ntwo\n", 7)


async def test_a_waiter_that_is_cancelled_during_the_ladder_sends_no_second_term(supervisor: Supervisor) -> None:
    with anyio.fail_after(BOUND):
        prepared = await supervisor.prepare(
            LaunchPlan(sh("trap 'echo term' TERM; echo part; while :; do sleep .02; done"), kill_after=0.8, timeout=0.3)
        )
        prepared.go()
        for _ in range(8):
            with anyio.move_on_after(0.1):
                await prepared.wait()
        end = await prepared.wait()
    assert end.facts.stdout == "part\nterm\n"
    assert (end.cause, end.signals) == (EndCause.TIMED_OUT, ("SIGTERM", "SIGKILL"))


async def test_closing_the_supervisor_ends_what_nobody_awaited(supervisor: Supervisor, tmp_path: Path) -> None:
    duration = unique_duration()
    with anyio.fail_after(BOUND), Lifeline(tmp_path) as line:
        prepared = await supervisor.prepare(LaunchPlan(sh(f"{line.sh}; trap '' TERM; sleep {duration}"), kill_after=600))
        prepared.go()
        await line.opened()
        waiting = await supervisor.prepare(LaunchPlan(("true",)))
        await supervisor.aclose()
        assert line.is_gone()
        assert (await prepared.wait()).cause is EndCause.STOPPED
        assert not (await waiting.wait()).started


async def test_the_limit_counts_from_the_release(supervisor: Supervisor) -> None:
    with anyio.fail_after(BOUND):
        prepared = await supervisor.prepare(LaunchPlan(sh("sleep 0.1; echo done"), timeout=0.6))
        await anyio.sleep(0.8)  # a test of time: it stands at its gate for longer than its limit
        prepared.go()
        end = await prepared.wait()
    assert (end.cause, end.facts.stdout) == (EndCause.EXITED, "done\n")


@pytest.mark.case("P41")
async def test_the_host_is_in_no_group_that_is_signalled(keeper: Supervisor) -> None:
    with anyio.fail_after(60):
        for _ in range(100):
            prepared = await keeper.prepare(LaunchPlan(("sleep", "60"), timeout=0.01))
            assert prepared.identity is not None
            group = os.getpgid(prepared.identity.pid)
            assert group == prepared.identity.pid != os.getpgrp()
            prepared.go()
            assert (await prepared.wait()).cause is EndCause.TIMED_OUT


@pytest.mark.case("P41")
async def test_best_effort_signals_no_group_of_the_host(best_effort: Supervisor) -> None:
    for _ in range(10):
        outcome = await run(best_effort, "ps -o pgid= -p $$; sleep 60", timeout=0.05)
        assert outcome.end.cause is EndCause.TIMED_OUT
