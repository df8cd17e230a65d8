"""A cgroup for each call: everything of it is in there, ends with it, and the folder goes; what cannot be had is refused."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from liveness import survivors, unique_duration
from process.shapes import BOUND, GRACE, part, run, run_until, sh

from toolrunner.errors import ConfigError
from toolrunner.facts import Containment
from toolrunner.process import CgroupLimits, EndCause, LaunchPlan, SpawnRefused, Supervisor
from toolrunner.process.cgroups import NoCgroup, open_room

pytestmark = pytest.mark.anyio


@pytest.fixture
async def contained(folder: Path, anyio_backend: object) -> AsyncIterator[Supervisor]:
    made = Supervisor(cgroup=folder)
    yield made
    await made.aclose()


SHAPES = {
    "background": "sleep {n} & echo part; wait",
    "own session": "setsid sleep {n} & echo part; wait",
    "double fork": "(setsid sleep {n} >/dev/null 2>&1 </dev/null &) ; echo part; sleep {n}",
    "no environment": "(env -i setsid sleep {n} >/dev/null 2>&1 &) ; echo part; sleep {n}",
    "deaf": "trap '' TERM INT HUP; sleep {n} & echo part; while :; do sleep .1; done",
    "tree": "for i in 1 2 3; do (sleep {n} & setsid sleep {n} & wait) & done; echo part; wait",
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_stopped_call_leaves_nobody_and_no_folder(contained: Supervisor, folder: Path, shape: str) -> None:
    duration = unique_duration()
    outcome = await run_until(contained, SHAPES[shape].format(n=duration), part, grace=GRACE)
    assert outcome.end.cause is EndCause.STOPPED
    assert outcome.end.still_running == ()
    assert outcome.end.facts.containment is Containment.CGROUP
    assert outcome.end.enforced == ("cgroup",)
    assert await survivors(duration) == []
    assert [path for path in folder.iterdir() if path.is_dir()] == []


async def test_the_command_and_what_it_starts_are_in_the_calls_own_cgroup(contained: Supervisor, folder: Path) -> None:
    outcome = await run(contained, "cat /proc/self/cgroup; (setsid cat /proc/self/cgroup &); sleep .1")
    named = {line for line in outcome.out.split() if line.startswith("0::")}
    assert len(named) == 1
    assert f"/{folder.name}/toolrunner-" in named.pop()
    assert outcome.end.cause is EndCause.EXITED


async def test_two_calls_have_two_cgroups(contained: Supervisor) -> None:
    first, second = [(await run(contained, "grep ^0:: /proc/self/cgroup")).out for _ in range(2)]
    assert first != second


async def test_what_outlives_the_leader_ends_by_the_cgroup(contained: Supervisor, folder: Path) -> None:
    duration = unique_duration()
    outcome = await run(contained, f"env -i setsid sleep {duration} >/dev/null 2>&1 & echo done")
    assert outcome.out == "done\n"
    assert len(outcome.end.facts.leftovers) == 1
    assert outcome.end.still_running == ()
    assert await survivors(duration) == []
    assert [path for path in folder.iterdir() if path.is_dir()] == []


async def test_the_end_is_proved_although_the_tool_killed_its_keeper(contained: Supervisor, folder: Path) -> None:
    duration = unique_duration()
    script = f"env -i setsid sleep {duration} >/dev/null 2>&1 & kill -9 $PPID; sleep {duration}"
    outcome = await run(contained, script)
    assert outcome.end.cause is EndCause.KEEPER_LOST
    assert outcome.end.still_running == ()
    assert outcome.end.facts.containment is Containment.CGROUP
    assert await survivors(duration) == []
    assert [path for path in folder.iterdir() if path.is_dir()] == []


async def test_the_end_is_proved_although_keeper_and_warden_were_killed(contained: Supervisor, folder: Path) -> None:
    duration = unique_duration()
    # Without parent, session, group and mark: only the cgroup still knows whose it is.
    stray = f"(env -i setsid sleep {duration} >/dev/null 2>&1 &); sleep .2"
    script = f"{stray}; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat) $PPID; sleep {duration}"
    outcome = await run(contained, script)
    assert outcome.end.cause is EndCause.KEEPER_LOST
    assert outcome.end.still_running == ()
    assert await survivors(duration) == []
    assert [path for path in folder.iterdir() if path.is_dir()] == []


async def test_cgroups_that_the_command_made_below_its_own_go_with_it(contained: Supervisor, folder: Path) -> None:
    duration = unique_duration()
    script = (
        f"at={folder}/$(grep ^0:: /proc/self/cgroup | sed 's:.*/::'); mkdir -p $at/a/b && "
        f"sh -c 'echo $$ > '$at'/a/b/cgroup.procs && echo part && exec sleep {duration}'"
    )
    outcome = await run_until(contained, script, part, grace=0)
    assert outcome.end.still_running == ()
    assert await survivors(duration) == []
    assert [path for path in folder.iterdir() if path.is_dir()] == []


async def test_a_call_that_is_given_up_at_its_gate_leaves_no_folder(contained: Supervisor, folder: Path) -> None:
    with anyio.fail_after(BOUND):
        prepared = await contained.prepare(LaunchPlan(sh("echo ran")))
        assert [path.is_dir() for path in folder.iterdir() if path.name.startswith("toolrunner-")] == [True]
        await prepared.abandon()
        end = await prepared.wait()
    assert not end.started
    assert [path for path in folder.iterdir() if path.is_dir()] == []


async def test_a_call_that_is_refused_leaves_no_folder(contained: Supervisor, folder: Path) -> None:
    with pytest.raises(SpawnRefused):
        await contained.prepare(LaunchPlan(("true",), cwd="/nowhere-at-all"))
    assert [path for path in folder.iterdir() if path.is_dir()] == []


async def test_its_host_dies_and_the_folder_goes_all_the_same(contained: Supervisor, folder: Path) -> None:
    duration = unique_duration()
    child = os.fork()
    if child == 0:  # as a host that is killed: its supervisor is never closed
        try:

            async def host() -> None:
                prepared = await Supervisor(cgroup=folder).prepare(LaunchPlan(sh(f"sleep {duration}")))
                prepared.go()
                os.kill(os.getpid(), signal.SIGKILL)

            anyio.run(host)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    with anyio.fail_after(BOUND):
        while [path for path in folder.iterdir() if path.is_dir()]:  # noqa: ASYNC110 - nobody announces it
            await anyio.sleep(0.01)
    assert await survivors(duration) == []


async def test_what_a_supervisor_can_do_names_the_cgroup(contained: Supervisor) -> None:
    assert (await contained.abilities()).containment is Containment.CGROUP


async def test_a_folder_that_is_no_cgroup_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    made = Supervisor(cgroup=tmp_path)
    try:
        with pytest.raises(SpawnRefused, match=r"containment cgroup was asked for, and it cannot be had: .* is no cgroup v2"):
            await made.prepare(LaunchPlan(("true",)))
        abilities = await made.abilities()
        assert abilities.containment is Containment.KEEPER
        assert "no cgroup v2" in abilities.reasons[-1]
    finally:
        await made.aclose()
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_that_is_not_there_is_refused() -> None:
    made = Supervisor(cgroup="/nowhere-at-all")
    try:
        with pytest.raises(SpawnRefused, match="'/nowhere-at-all': No such file"):
            await made.prepare(LaunchPlan(("true",)))
    finally:
        await made.aclose()


async def test_a_limit_without_its_controller_is_refused_before_anything_runs(folder: Path) -> None:
    if "pids" in (folder / "cgroup.controllers").read_text():
        pytest.skip("this machine has the controller")
    made = Supervisor(cgroup=folder, limits=CgroupLimits(memory=1 << 26, processes=50))
    try:
        with pytest.raises(SpawnRefused, match="has no memory and no pids controller, so that limit cannot be kept"):
            await made.prepare(LaunchPlan(("true",)))
    finally:
        await made.aclose()


async def test_a_limit_with_its_controller_holds(folder: Path) -> None:
    if "pids" not in (folder / "cgroup.controllers").read_text():
        pytest.skip("this cgroup has no pids controller")
    made = Supervisor(cgroup=folder, limits=CgroupLimits(processes=5))
    try:
        outcome = await run(made, "for i in 1 2 3 4 5 6 7 8 9; do sleep .3 & done; wait")
        assert "esource temporarily unavailable" in outcome.end.facts.stderr
        assert outcome.end.enforced == ("cgroup", "pids.max=5")
    finally:
        await made.aclose()


def test_limits_are_written_into_each_calls_folder_and_controllers_handed_down(tmp_path: Path) -> None:
    """On files that only look like control files: what is written where."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("")
    with pytest.raises(
        NoCgroup, match=r"memory.max cannot be set: No such file"
    ):  # the kernel makes those files, a disk does not
        open_room(tmp_path, CgroupLimits(memory=4096, processes=3))
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("limits", [{"memory": 0}, {"processes": -1}, {"processes": 1.5}])
def test_a_limit_that_is_no_number_is_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        CgroupLimits(**limits)


def test_a_cgroup_and_another_containment_contradict_each_other() -> None:
    with pytest.raises(ConfigError, match="because a cgroup or limits are given"):
        Supervisor(cgroup="/sys/fs/cgroup", containment=Containment.BEST_EFFORT)
