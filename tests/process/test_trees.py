"""Everything a call started ends with it: children, pipelines, other groups, other sessions, orphans, daemons."""

import time
from pathlib import Path

import anyio
import pytest
from liveness import Lifeline, survivors, unique_duration
from process.shapes import BOUND, GRACE, SLACK, Outcome, alive, part, run, run_until

from toolrunner.facts import Containment, Drained
from toolrunner.process import EndCause, LaunchPlan, Supervisor

pytestmark = pytest.mark.anyio

TOGETHER = 3  # calls that wait for their limits at the same time; more would make each other late
LIMIT = 1.0  # of the call, in seconds: long enough for a shell and its children to be up on a busy machine


async def check_gone(outcome: Outcome, line: Lifeline, duration: str) -> None:
    """Nothing was left when the result came, and nothing comes back."""
    assert line.is_gone()
    assert await survivors(duration) == []
    if outcome.end.facts.containment is not Containment.BEST_EFFORT:
        assert outcome.end.still_running == ()
    else:
        assert outcome.end.still_running is None
        assert any("best_effort" in text for text in outcome.end.missing)


SCRIPTS = {
    "P1": "for i in 1 2; do (while :; do sleep 0.05; done) & done; echo part; sleep DUR",
    "P2": "echo part; yes | grep -v y | head -3; echo never",
    "P12": "echo part; setsid sleep DUR & wait",
    "P13": "python3 -c \"import os,time;os.fork() or (os.setpgrp(),os.execlp('sleep','sleep','DUR'));"
    "print('part',flush=True);time.sleep(60)\"",
    "P14": "echo part; timeout 900 sleep DUR; true",
    "job control": "echo part; set -m; sleep DUR & sleep DUR",
    "double fork": "echo part; ( ( sleep DUR & ) & ); sleep DUR",
    "nohup": "echo part; nohup sleep DUR >/dev/null 2>&1 & disown; sleep DUR",
    "script": "echo part; script -qc 'sleep DUR' /dev/null; true",
}


@pytest.mark.case("P1", "P2", "P12", "P13", "P14")
async def test_calls_that_run_into_their_limits_end_with_all_they_started(supervisor: Supervisor, tmp_path: Path) -> None:
    """Some at once: each takes its whole limit."""
    room = anyio.CapacityLimiter(TOGETHER)

    async def one(name: str, script: str) -> None:
        duration = unique_duration()
        try:
            async with room:
                with Lifeline(tmp_path) as line:
                    outcome = await run(supervisor, f"{line.sh}; " + script.replace("DUR", duration), timeout=LIMIT)
                    assert outcome.end.cause is EndCause.TIMED_OUT
                    assert LIMIT <= outcome.seconds <= LIMIT + GRACE + SLACK
                    assert "part" in outcome.out
                    await check_gone(outcome, line, duration)
        except BaseException as exc:
            exc.add_note(f"script {name!r}")
            raise

    async with anyio.create_task_group() as tasks:
        for name, script in SCRIPTS.items():
            tasks.start_soon(one, name, script)


@pytest.mark.case("P5")
async def test_no_descendant_writes_after_the_call_was_reported(supervisor: Supervisor, tmp_path: Path) -> None:
    late, now, duration = tmp_path / "late", tmp_path / "now", unique_duration()
    with Lifeline(tmp_path) as line:
        script = f"{line.sh}; (until [ -e {now} ]; do sleep 0.02; done; echo late >{late}) & echo part; sleep {duration}"
        outcome = await run(supervisor, script, timeout=LIMIT)
        assert outcome.end.cause is EndCause.TIMED_OUT
        await check_gone(outcome, line, duration)
    now.touch()
    await anyio.sleep(0.5)  # a test of time: whoever lived would have looked 25 times
    assert not late.exists()


@pytest.mark.case("P6")
async def test_the_process_is_dead_before_its_result_is_there(supervisor: Supervisor, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    outcome = await run_until(supervisor, f"echo $$ >{pid_file}; echo part; exec sleep {unique_duration()}", part)
    assert outcome.end.cause is EndCause.STOPPED
    assert outcome.end.facts.pid == int(pid_file.read_text())
    assert not Path(f"/proc/{pid_file.read_text().strip()}").exists()


@pytest.mark.case("P9")
async def test_what_a_successful_command_left_in_the_background_is_ended_and_listed(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    duration = unique_duration()
    with Lifeline(tmp_path) as line:
        outcome = await run(supervisor, f"{line.sh}; sleep {duration} >/dev/null 2>&1 & echo done")
        assert (outcome.end.cause, outcome.end.facts.exit_code, outcome.out) == (EndCause.EXITED, 0, "done\n")
        assert outcome.seconds < SLACK
        assert outcome.end.signals == ()  # none was sent to stop the call
        (left,) = outcome.end.facts.leftovers
        assert left.what in {"sleep", "bash"}  # the shell's fork, when it had no time to become the sleep
        assert left.pid is not None
        assert not alive(left.pid)
    assert await survivors(duration) == []


@pytest.mark.case("P16")
async def test_a_daemon_in_another_session_ends_with_its_successful_call(supervisor: Supervisor, tmp_path: Path) -> None:
    duration = unique_duration()
    with Lifeline(tmp_path) as line:
        outcome = await run(supervisor, f"{line.sh}; setsid -f sleep {duration}; echo done")
        assert (outcome.end.cause, outcome.out) == (EndCause.EXITED, "done\n")
        await check_gone(outcome, line, duration)


@pytest.mark.case("P18")
async def test_a_daemon_that_dropped_everything_ends_with_its_call(keeper: Supervisor, tmp_path: Path) -> None:
    duration = unique_duration()
    with Lifeline(tmp_path) as line:
        outcome = await run(keeper, f"{line.sh}; env -i setsid -f sleep {duration} </dev/null >/dev/null 2>&1; echo done")
        assert (outcome.end.cause, outcome.out) == (EndCause.EXITED, "done\n")
        await check_gone(outcome, line, duration)


@pytest.mark.case("P18")
async def test_without_a_keeper_the_result_says_best_effort(best_effort: Supervisor) -> None:
    outcome = await run(best_effort, "echo done")
    assert outcome.end.facts.containment is Containment.BEST_EFFORT
    assert outcome.end.still_running is None
    assert any("no proof" in text for text in outcome.end.missing)


@pytest.mark.parametrize(
    "script,drained",
    [
        pytest.param("exec > >(tee LOG; sleep DUR) 2>&1; echo done", Drained.DEADLINE, marks=pytest.mark.case("P19"), id="tee"),
        pytest.param("sleep DUR & echo done", Drained.DEADLINE, marks=pytest.mark.case("P20"), id="silent"),
        pytest.param("sleep DUR >/dev/null & echo done", Drained.DEADLINE, marks=pytest.mark.case("P20"), id="stderr-only"),
        pytest.param(
            "(while :;do echo tick;sleep .05;done)& echo done;sleep .2",
            Drained.DEADLINE,
            marks=pytest.mark.case("P20"),
            id="chatty",
        ),
        pytest.param("setsid sleep DUR & echo done", Drained.DEADLINE, marks=pytest.mark.case("P20"), id="setsid"),
        pytest.param("sleep DUR >/dev/null 2>&1 & echo done", Drained.EOF, marks=pytest.mark.case("P20"), id="closed"),
    ],
)
async def test_who_holds_the_pipe_after_the_exit_delays_the_result_by_the_drain_bound(
    supervisor: Supervisor, tmp_path: Path, script: str, drained: Drained
) -> None:
    duration = unique_duration()
    script = script.replace("DUR", duration).replace("LOG", str(tmp_path / "log"))
    outcome = await run(supervisor, script, timeout=30)
    assert (outcome.end.cause, outcome.end.facts.exit_code) == (EndCause.EXITED, 0)
    assert "done\n" in outcome.out
    assert outcome.seconds < 0.3 + SLACK
    assert outcome.end.facts.drained is drained
    assert await survivors(duration) == []


@pytest.mark.case("P22", "P23")
@pytest.mark.parametrize("grace", [0, GRACE])
async def test_a_stopped_call_does_not_wait_for_the_grandchild_that_holds_its_pipe(supervisor: Supervisor, grace: float) -> None:
    duration = unique_duration()
    outcome = await run_until(supervisor, f"setsid sleep {duration} & echo part; wait", part, grace=grace)
    assert outcome.end.cause is EndCause.STOPPED
    assert outcome.seconds < GRACE + SLACK
    assert await survivors(duration) == []


@pytest.mark.case("P75")
async def test_a_limit_ends_its_own_call_and_nothing_else(supervisor: Supervisor) -> None:
    duration = unique_duration()
    with anyio.fail_after(BOUND):
        neighbour = await supervisor.prepare(LaunchPlan(("sleep", duration)))
        neighbour.go()
        outcome = await run(supervisor, "echo part; sleep 60", timeout=LIMIT)
        assert outcome.end.cause is EndCause.TIMED_OUT
        assert await survivors(duration, rounds=1) != []
        neighbour.stop()
        assert (await neighbour.wait()).cause is EndCause.STOPPED


@pytest.mark.case("P11")
async def test_the_end_of_a_stopped_call_is_known_only_when_it_is_gone(supervisor: Supervisor) -> None:
    before = time.monotonic()
    outcome = await run_until(supervisor, "trap '' TERM; echo part; while :; do sleep .05; done", part, grace=0.5)
    assert time.monotonic() - before >= 0.5
    assert outcome.end.facts.pid is not None
    assert not alive(outcome.end.facts.pid)
