"""What only the kernel can say: who is gone, whose number it is, who may be signalled, who is stuck."""

import os
import signal
import statistics
import subprocess
import time
from functools import partial
from pathlib import Path

import anyio
import psutil
import pytest
from liveness import survivors, unique_duration
from process.host import host_running
from process.shapes import BOUND, GRACE, SLACK, run, sh

from toolrunner.facts import Containment, StillRunningKind
from toolrunner.process import EndCause, LaunchPlan, Supervisor, survey
from toolrunner.process.identity import identity_of
from toolrunner.process.keeping.messages import DRAIN_BOUND, REAP_BOUND
from toolrunner.process.keeping.sweep import sweep
from toolrunner.process.keeping.system import Kernel, stat
from toolrunner.process.survey import send

pytestmark = pytest.mark.anyio

FREEZER = Path("/sys/fs/cgroup/freezer")
NEW_PIDS = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


@pytest.mark.case("P46")
async def test_the_hosts_own_children_keep_their_status(supervisor: Supervisor) -> None:
    handler = signal.getsignal(signal.SIGCHLD)
    with subprocess.Popen(("sh", "-c", "read x; exit 7"), stdin=subprocess.PIPE) as own:
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(partial(run, supervisor, "sleep 60 & exit 3", timeout=10))
        own.communicate(b"\n")
    assert own.returncode == 7
    assert signal.getsignal(signal.SIGCHLD) is handler
    orphan = await anyio.run_process(("sh", "-c", "sleep 0.2 & echo $!"), stderr=None)
    assert getattr(stat(int(orphan.stdout)), "ppid", 0) != os.getpid()  # the host adopts nobody
    with anyio.fail_after(BOUND):
        while os.path.exists(f"/proc/{int(orphan.stdout)}"):  # noqa: ASYNC110 - so it is not our child
            await anyio.sleep(0.005)


@pytest.mark.case("P86")
async def test_only_a_command_that_leaves_a_holder_pays_the_drain_bound(keeper: Supervisor) -> None:
    await run(keeper, ("true",))
    alone = [(await run(keeper, ("true",))).seconds for _ in range(20)]
    assert statistics.median(alone) < DRAIN_BOUND / 2
    outcome = await run(keeper, "sleep 60 & exit 0")
    exited, ended = outcome.end.facts.leader_exit_at, outcome.end.ended_at
    assert exited is not None
    assert ended is not None
    assert DRAIN_BOUND <= (ended - exited).total_seconds() < DRAIN_BOUND + SLACK


CHAINS = """
CHAIN = '''
import os, sys, time
os.write(1, b'part')
for hop in range(3000):
    if os.fork():
        os._exit(0)
    {hop}
time.sleep(600)
'''
def chained():
    found = []
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            if b'-S\\0-c' in open(f'/proc/{name}/cmdline', 'rb').read():
                found.append(name)
        except OSError:
            pass
    return found

async def main(supervisor):
    import subprocess, statistics
    stranger = subprocess.Popen(('sleep', '600'), start_new_session=True)
    took = []
    for index in range(RUNS):
        hop = 'os.setsid()' if index % 2 else ''
        seen = lambda stream, data: prepared.stop(grace=0)
        prepared = await supervisor.prepare(
            LaunchPlan((sys._base_executable, '-I', '-S', '-c', CHAIN.replace('{hop}', hop))), on_output=seen)
        prepared.go()
        end = await prepared.wait()
        assert end.still_running == (), end
        assert end.facts.unreaped == ()
        # The leader exits at its first hop, so most ends are "exited": the sweep is what is timed.
        took.append((end.ended_at - (end.delivered_at or end.facts.leader_exit_at)).total_seconds())
        assert not chained()
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()
    say(statistics.median(took), max(took))
"""


@pytest.mark.case("P76")
@pytest.mark.root
def test_a_chain_of_forks_and_exits_is_swept_without_touching_a_stranger(tmp_path: Path) -> None:
    with host_running(tmp_path, CHAINS.replace("RUNS", "200"), wrap=NEW_PIDS) as host:
        status, out = host.rest(120)
    assert status == 0
    median, longest = map(float, out.split())
    assert median < 0.2 + DRAIN_BOUND
    assert longest < REAP_BOUND


REUSED = """
def next_pid(number):
    with open('/proc/sys/kernel/ns_last_pid', 'w') as file:
        file.write(str(number - 1))

async def main(supervisor):
    import subprocess
    stranger = lambda: subprocess.Popen(('sleep', '600'), start_new_session=True)
    gone = anyio.Event()
    def look(stream, data):
        if b'part' in data: prepared.stop(grace=1)
        if b'left' in data: gone.set()
    script = 'trap "" TERM; echo part; sleep 600'
    # The leader obeys, its child does not: for a second the leader is dead and its group is still to be killed.
    script = "bash -c '" + script + "' & trap 'echo left; exit 0' TERM; wait"
    prepared = await supervisor.prepare(LaunchPlan(('bash', '-c', script)), on_output=look)
    leader = prepared.identity.pid
    prepared.go()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(prepared.wait)
        await gone.wait()
        await anyio.sleep(.2)
        next_pid(leader)
        early = stranger()
        assert early.pid != leader, 'the number of an unreaped leader was given away'
    end = await prepared.wait()
    assert end.signals == ('SIGTERM', 'SIGKILL'), end
    assert early.poll() is None
    while os.waitpid(-1, os.WNOHANG)[0]:  # this host is the init of its namespace, and a zombie pins the number of its session
        pass
    next_pid(leader)
    late = stranger()
    assert late.pid == leader, 'the number was to be reused'
    prepared.stop(grace=0)
    await prepared.abandon()
    assert late.poll() is None
    for process in (early, late):
        process.kill()
        process.wait()
    say('lives')
"""


@pytest.mark.case("P44")
@pytest.mark.root
@pytest.mark.parametrize("containment", list(Containment)[2:])
def test_a_stranger_with_a_reused_number_lives(tmp_path: Path, containment: Containment) -> None:
    body = REUSED
    if containment is Containment.BEST_EFFORT:
        body = body.replace("supervisor.prepare", "Supervisor(containment=Containment.BEST_EFFORT).prepare")
        body = body.replace(
            "leader = prepared.identity.pid\n    prepared.go()", "prepared.go()\n    leader = prepared.identity.pid"
        )
    with host_running(tmp_path, body, wrap=NEW_PIDS) as host:
        assert host.rest() == (0, "lives\n")


@pytest.mark.case("P45")
def test_a_process_with_another_start_time_is_not_signalled() -> None:
    with subprocess.Popen(("sleep", "60")) as child:
        facts = stat(child.pid)
        assert facts is not None
        assert not Kernel().signal_other(child.pid, facts.starttime + 1, signal.SIGKILL)
        reused = psutil.Process(child.pid)
        reused._ident = (child.pid, reused.create_time() + 5)  # type: ignore[attr-defined]
        assert send(reused, signal.SIGKILL) == ""
        assert child.poll() is None
        assert Kernel().signal_other(child.pid, facts.starttime, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL


@pytest.mark.case("P45")
def test_a_stranger_with_the_leaders_number_is_no_quarry() -> None:
    with subprocess.Popen(("sleep", "60"), start_new_session=True) as stranger:
        facts = stat(stranger.pid)
        assert facts is not None
        mine = survey.survey(survey.Quarry("no such mark", identity_of(stranger.pid, facts.starttime)))
        assert [process.pid for process in mine] == [stranger.pid]
        assert survey.survey(survey.Quarry("no such mark", identity_of(stranger.pid, facts.starttime - 1))) == []
        stranger.kill()


class FakeKernel(Kernel):
    """Children that cannot be signalled: someone else's."""

    def __init__(self, error: type[OSError]) -> None:
        super().__init__()
        self.error = error
        self.kills = 0

    def children(self, pid: int | None = None) -> list[int]:
        return [1]  # init: it has a stat and an owner

    def kill(self, pid: int, number: int) -> None:
        self.kills += 1
        raise self.error

    def reap(self, pid: int = -1) -> tuple[int, int]:
        return 0, 0


@pytest.mark.case("P38")
def test_a_child_we_may_not_signal_is_listed_with_its_owner() -> None:
    kernel = FakeKernel(PermissionError)
    pauses: list[float] = []
    swept = sweep(kernel, time.monotonic() + 0.05, pauses.append, lambda *_: None)
    assert [(pid, uid, error) for pid, uid, _, _, error in swept.left] == [(1, 0, "EPERM")]
    assert kernel.kills > 1
    assert max(pauses) <= 0.001


@pytest.mark.case("P38")
async def test_a_survivor_with_its_owner_is_in_the_result(best_effort: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "send", lambda process, number: "EPERM")
    with anyio.fail_after(BOUND):
        prepared = await best_effort.prepare(
            LaunchPlan(sh("trap '' TERM; setsid sleep 60 & echo part; wait"), kill_after=0.1, timeout=0.3)
        )
        prepared.go()
        end = await prepared.wait()
    assert end.cause is EndCause.TIMED_OUT
    assert end.still_running is not None
    assert [(left.what, left.kind, left.uid, left.error) for left in end.still_running] == [
        ("sleep", StillRunningKind.PROCESS, os.getuid(), "EPERM")
    ]
    assert end.still_running == end.facts.unreaped == best_effort.unreaped()
    monkeypatch.undo()
    assert end.still_running[0].pid is not None
    os.kill(end.still_running[0].pid, signal.SIGKILL)
    with anyio.fail_after(BOUND):
        while best_effort.unreaped():  # noqa: ASYNC110 - it is nobody's child here
            await anyio.sleep(0.01)


@pytest.fixture
def freezer(tmp_path: Path) -> Path:
    folder = FREEZER / f"toolrunner-test-{os.getpid()}"
    if not (FREEZER / "cgroup.procs").exists():
        pytest.skip("no cgroup v1 freezer")
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.case("P35")
@pytest.mark.root
async def test_a_process_that_no_kill_ends_is_reported_and_collected_later(keeper: Supervisor, freezer: Path) -> None:
    duration = unique_duration()
    with anyio.fail_after(BOUND):
        prepared = await keeper.prepare(LaunchPlan(("sleep", duration), kill_after=GRACE))
        assert prepared.identity is not None
        prepared.go()
        (freezer / "cgroup.procs").write_text(str(prepared.identity.pid))
        (freezer / "freezer.state").write_text("FROZEN")
        try:
            start = time.monotonic()
            prepared.stop()
            end = await prepared.wait()
            assert time.monotonic() - start < GRACE + REAP_BOUND + SLACK
            assert end.cause is EndCause.STOPPED
            assert end.started
            assert [left.pid for left in end.facts.unreaped] == [prepared.identity.pid]
            assert end.still_running == end.facts.unreaped == keeper.unreaped()
            assert (end.facts.exit_code, end.facts.signal) == (None, None)
            assert (await run(keeper, "echo next")).out == "next\n"
        finally:
            (freezer / "freezer.state").write_text("THAWED")
        while os.path.exists(f"/proc/{prepared.identity.pid}"):  # noqa: ASYNC110 - the warden reaps it, not we
            await anyio.sleep(0.005)
        assert keeper.unreaped() == ()
        freezer.rmdir()
    assert await survivors(duration) == []


async def test_many_orphans_of_a_running_call_do_not_stay_zombies(keeper: Supervisor) -> None:
    script = "for i in $(seq 50); do (sleep 0.01 &) ; done; sleep 0.3; ps -o stat= --ppid $PPID"
    outcome = await run(keeper, script)
    assert "Z" not in outcome.out
