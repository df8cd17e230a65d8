"""What outlives a command with `leftovers=keep`, at the supervisor: handed over by its keeper, heard, stopped, ended."""

import anyio
import pytest
from liveness import survivors, unique_duration
from process.shapes import BOUND, GRACE, SLACK, alive, run, run_until, sh

from toolrunner.facts import StillRunningKind
from toolrunner.process import EndCause, LaunchPlan, Leftovers, SpawnRefused, Supervisor

pytestmark = pytest.mark.anyio

KEEP = Leftovers.KEEP


@pytest.mark.case("P9")
async def test_what_a_command_left_lives_on_and_is_named_in_its_end(keeper: Supervisor) -> None:
    duration = unique_duration()
    with anyio.fail_after(BOUND):
        prepared = await keeper.prepare(LaunchPlan(sh(f"sleep {duration} >/dev/null 2>&1 & echo done"), leftovers=KEEP))
        prepared.go()
        end = await prepared.wait()
        assert (end.cause, end.facts.exit_code, end.facts.stdout) == (EndCause.EXITED, 0, "done\n")
        (kept,) = end.facts.kept
        assert kept.kind is StillRunningKind.JOB
        assert end.still_running == (kept,)
        assert kept.pid is not None
        assert alive(kept.pid)
        assert len(await survivors(duration)) == 1
        prepared.stop()
        rest = await prepared.wait_rest()
    assert rest.cause is EndCause.STOPPED
    assert rest.signals == ("SIGTERM",)
    assert rest.still_running == ()
    assert await prepared.wait() == end
    assert await survivors(duration) == []


async def test_a_command_that_leaves_nobody_is_over_as_ever(keeper: Supervisor) -> None:
    outcome = await run(keeper, "echo done", leftovers=KEEP)
    assert outcome.end.facts.kept == ()
    assert outcome.end.still_running == ()
    assert outcome.seconds < SLACK


async def test_the_rest_that_ends_by_itself_is_not_stopped_and_its_output_is_whole(keeper: Supervisor) -> None:
    with anyio.fail_after(BOUND):
        chunks: list[bytes] = []
        prepared = await keeper.prepare(
            LaunchPlan(sh("(sleep .3; seq 50000) & echo done"), leftovers=KEEP), on_output=lambda _, data: chunks.append(data)
        )
        prepared.go()
        end = await prepared.wait()
        assert end.facts.stdout == "done\n"
        rest = await prepared.wait_rest()
    assert rest.cause is EndCause.EXITED
    assert rest.signals == ()
    assert b"".join(chunks) == b"done\n" + b"".join(b"%d\n" % n for n in range(1, 50001))


async def test_the_rest_gets_the_whole_ladder(keeper: Supervisor) -> None:
    duration = unique_duration()
    script = f"(trap '' TERM; setsid sleep {duration} & sleep {duration}; sleep {duration}) >/dev/null 2>&1 & sleep .1"
    with anyio.fail_after(BOUND):
        prepared = await keeper.prepare(LaunchPlan(sh(script), leftovers=KEEP, kill_after=GRACE))
        prepared.go()
        end = await prepared.wait()
        assert len(end.facts.kept) == 3
        prepared.stop()
        rest = await prepared.wait_rest()
    assert rest.signals == ("SIGTERM", "SIGKILL")
    assert rest.escalated
    assert rest.still_running == ()
    assert await survivors(duration) == []


async def test_killing_the_rest_now_is_told_as_a_stop(keeper: Supervisor) -> None:
    with anyio.fail_after(BOUND):
        prepared = await keeper.prepare(LaunchPlan(sh("sleep 600 >/dev/null 2>&1 &"), leftovers=KEEP))
        prepared.go()
        await prepared.wait()
        await prepared.abandon()
        rest = await prepared.wait_rest()
    assert rest.cause is EndCause.STOPPED
    assert rest.signals == ("SIGKILL",)


@pytest.mark.case("A16")
async def test_a_command_that_is_stopped_keeps_nobody(keeper: Supervisor) -> None:
    duration = unique_duration()
    outcome = await run_until(
        keeper, f"sleep {duration} & echo part; wait", lambda out: b"part" in out, leftovers=KEEP, grace=GRACE
    )
    assert outcome.end.cause is EndCause.STOPPED
    assert outcome.end.facts.kept == ()
    assert await survivors(duration) == []


@pytest.mark.case("A16")
async def test_a_stop_that_crosses_the_hand_over_leaves_nobody(keeper: Supervisor) -> None:
    duration = unique_duration()
    with anyio.fail_after(BOUND):
        prepared = await keeper.prepare(LaunchPlan(sh(f"sleep {duration} >/dev/null 2>&1 & exit"), leftovers=KEEP))
        prepared.go()
        identity = prepared.identity
        assert identity is not None
        while alive(identity.pid):  # noqa: ASYNC110 - nobody reads the keeper's messages meanwhile, and that is the point
            await anyio.sleep(0.005)
        await anyio.sleep(0.2)  # past D: the keeper has handed it over, and nobody has heard of that yet
        prepared.stop()
        end = await prepared.wait()
    assert end.facts.kept == ()
    assert end.still_running == ()
    assert await survivors(duration) == []


async def test_a_closed_supervisor_leaves_nobody(keeper: Supervisor) -> None:
    duration = unique_duration()
    with anyio.fail_after(BOUND):
        prepared = await keeper.prepare(
            LaunchPlan(sh(f"trap '' TERM; setsid sleep {duration} >/dev/null 2>&1 &"), leftovers=KEEP)
        )
        prepared.go()
        await prepared.wait()
        await keeper.aclose()
    assert await survivors(duration) == []


async def test_a_lost_keeper_takes_the_rest_with_it(keeper: Supervisor) -> None:
    duration = unique_duration()
    with anyio.fail_after(BOUND):
        prepared = await keeper.prepare(
            LaunchPlan(sh(f"k=$PPID; (sleep .4; kill -9 $k; sleep {duration}) >/dev/null 2>&1 & exit"), leftovers=KEEP)
        )
        prepared.go()
        assert (await prepared.wait()).facts.kept
        rest = await prepared.wait_rest()
    assert rest.cause is EndCause.KEEPER_LOST
    assert await survivors(duration) == []


async def test_without_keepers_nobody_can_be_kept_and_that_is_refused(best_effort: Supervisor) -> None:
    with pytest.raises(SpawnRefused, match="best_effort cannot keep"):
        await best_effort.prepare(LaunchPlan(("true",), leftovers=KEEP))
