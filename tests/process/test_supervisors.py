"""Supervisors of one host: many calls at once, one warden for all threads, forked copies, and the end."""

import os
import threading
from pathlib import Path

import anyio
import pytest
from process.shapes import BOUND, run, sh

from toolrunner.errors import RunnerClosed
from toolrunner.process import EndCause, LaunchPlan, Supervisor

pytestmark = pytest.mark.anyio


async def test_a_forked_copy_of_the_host_is_refused_and_disturbs_nothing(supervisor: Supervisor) -> None:
    with anyio.fail_after(BOUND):
        prepared = await supervisor.prepare(LaunchPlan(sh("cat; echo done"), stdin=b"data\n"))
        child = os.fork()
        if child == 0:
            try:
                supervisor.prepare(LaunchPlan(("true",))).send(None)
            except RunnerClosed:
                os._exit(11)
            finally:
                os._exit(12)
        prepared.go()
        end = await prepared.wait()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 11
    assert end.facts.stdout == "data\ndone\n"


async def test_a_forked_copy_of_the_host_does_not_hold_a_tools_stdin(supervisor: Supervisor) -> None:
    """The copy lives on; `cat` must see the end of its input all the same."""
    read_end, write_end = os.pipe()
    with anyio.fail_after(BOUND):
        prepared = await supervisor.prepare(LaunchPlan(("cat",), stdin=b"data"))
        child = os.fork()
        if child == 0:
            try:
                os.close(write_end)
                os.read(read_end, 1)
            finally:
                os._exit(0)
        prepared.go()
        end = await prepared.wait()
    os.close(write_end)
    os.close(read_end)
    os.waitpid(child, 0)
    assert end.facts.stdout == "data"
    assert end.cause is EndCause.EXITED


async def test_a_closed_supervisor_takes_nothing(supervisor: Supervisor) -> None:
    await supervisor.aclose()
    await supervisor.aclose()
    with pytest.raises(RunnerClosed):
        await supervisor.prepare(LaunchPlan(("true",)))


async def test_a_cancelled_prepare_leaves_nothing(keeper: Supervisor) -> None:
    for _ in range(10):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await keeper.prepare(LaunchPlan(("true",)))
    assert (await run(keeper, "echo next")).out == "next\n"


@pytest.mark.uvloop
async def test_two_hundred_at_once(keeper: Supervisor) -> None:
    ends = []

    async def one(index: int) -> None:
        prepared = await keeper.prepare(LaunchPlan(("echo", str(index))))
        prepared.go()
        ends.append((index, (await prepared.wait()).facts.stdout))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for index in range(200):
                tasks.start_soon(one, index)
    assert sorted(ends) == [(index, f"{index}\n") for index in range(200)]


WARDEN = "awk '{print $4}' /proc/$PPID/stat"


async def test_supervisors_of_several_threads_share_one_warden_until_the_last_leaves(keeper: Supervisor) -> None:
    warden = int((await run(keeper, WARDEN)).out)
    others: list[int] = []

    async def elsewhere() -> None:
        other = Supervisor()
        others.extend([int((await run(other, WARDEN)).out) for _ in range(5)])
        await other.aclose()

    threads = [threading.Thread(target=anyio.run, args=(elsewhere,), kwargs={"backend": name}) for name in ("asyncio", "trio")]
    for thread in threads:
        thread.start()
    with anyio.fail_after(BOUND):
        while any(thread.is_alive() for thread in threads):
            assert int((await run(keeper, WARDEN)).out) == warden
    for thread in threads:
        thread.join()
    assert others == [warden] * 10
    await keeper.aclose()
    assert not Path(f"/proc/{warden}").exists()


async def test_a_host_that_changed_what_only_a_start_can_carry_gets_a_new_warden(keeper: Supervisor) -> None:
    processors = os.sched_getaffinity(0)
    if len(processors) < 2:
        pytest.skip("needs two processors to change which of them may be used")
    first = (await run(keeper, WARDEN)).out
    os.sched_setaffinity(0, {min(processors)})
    try:
        outcome = await run(keeper, f"{WARDEN}; nproc")
        assert outcome.out.split()[0] != first.strip()
        assert outcome.out.split()[1] == "1"
    finally:
        os.sched_setaffinity(0, processors)
