"""Tools that look at, attack, stop or kill their supervisor."""

import contextlib
import os
import signal
from pathlib import Path

import anyio
import kernel
import pytest
from liveness import survivors, unique_duration
from plain_user import PlainUser
from process.host import host_running
from process.shapes import BOUND, GRACE, SLACK, alive, part, run, run_until

from toolrunner.facts import Containment
from toolrunner.process import EndCause, LaunchPlan, SpawnRefused, Supervisor, wardens

pytestmark = pytest.mark.anyio

KEEPER = "$PPID"
WARDEN = "$(awk '{print $4}' /proc/$PPID/stat)"


@pytest.mark.case("P77")
async def test_a_tool_has_exactly_its_three_descriptors(supervisor: Supervisor) -> None:
    listing = "import os; print(sorted(f for f in map(int, os.listdir('/proc/self/fd')) if os.path.exists(f'/proc/self/fd/{f}')))"
    outcome = await run(supervisor, ("python3", "-c", listing))
    assert outcome.out == "[0, 1, 2]\n"


@pytest.mark.case("P77")
async def test_a_tool_has_what_its_plan_names_and_nothing_more(keeper: Supervisor, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("A")
    (tmp_path / "b").write_text("B")
    with open(tmp_path / "a", "rb") as a, open(tmp_path / "b", "rb") as b:
        outcome = await run(
            keeper, "cat <&5 <&7; cat <&5; ls /proc/self/fd | tr '\\n' ' '", pass_fds={5: b.fileno(), 7: a.fileno()}
        )
    assert outcome.out == "AB0 1 2 3 5 7 "  # 3 is the folder that ls reads


ATTACK = """
import ctypes, os, socket
keeper = os.getppid()
warden = int(open(f'/proc/{keeper}/stat').read().rpartition(')')[2].split()[1])
libc = ctypes.CDLL(None, use_errno=True)
for pid in (keeper, warden):
    pidfd = os.pidfd_open(pid)
    for number in range(64):
        assert libc.syscall(438, pidfd, number, 0) == -1, 'pidfd_getfd'
    assert libc.ptrace(16, pid, None, None) == -1, 'ptrace'
    for name in ('fd', 'environ', 'mem', 'maps'):
        try:
            path = f'/proc/{pid}/{name}'
            data = os.listdir(path) if name == 'fd' else open(path, 'rb').read(1)
        except OSError:
            continue
        assert not data, name
print('kept out')
"""


@pytest.mark.case("P77", "P78")
def test_a_tool_cannot_reach_into_its_supervisors(as_plain_user: PlainUser, tmp_path: Path) -> None:
    body = f"""
async def main(supervisor):
    end = await run(supervisor, 'python3', '-c', {ATTACK!r}, env={{'PATH': os.path.dirname(sys._base_executable)}})
    say(repr(end.facts.stdout), repr(end.facts.stderr))
"""
    with host_running(tmp_path, body, user=as_plain_user) as host:
        status, out = host.rest()
    assert out == "'kept out\\n' ''\n"
    assert status == 0


@pytest.mark.case("P78", "P42")
async def test_the_supervisors_show_neither_environment_nor_command(keeper: Supervisor) -> None:
    script = (
        f"cat /proc/{KEEPER}/environ /proc/{WARDEN}/environ; cat /proc/{KEEPER}/cmdline /proc/{WARDEN}/cmdline | tr '\\0' ' '; "
    )
    outcome = await run(keeper, script + f"echo; cat /proc/{KEEPER}/comm /proc/{WARDEN}/comm")
    assert outcome.out.split() == ["tr-warden", "tr-warden", "tr-keeper", "tr-warden"]


@pytest.mark.case("P87", "P42")
async def test_a_pattern_kill_of_its_own_text_leaves_the_supervisor_alone(keeper: Supervisor) -> None:
    duration = unique_duration()
    first = await run(keeper, f"sleep {duration} & echo part; pkill -KILL -f {duration}; sleep {duration}")
    assert (first.end.cause, first.end.facts.signal) == (EndCause.EXITED, "SIGKILL")
    assert first.end.still_running == ()


@pytest.mark.case("P79")
async def test_a_tool_that_kills_its_keeper_is_ended_by_the_warden(keeper: Supervisor) -> None:
    duration = unique_duration()
    script = f"setsid sleep {duration} & (env -i setsid -f sleep {duration}); echo part; kill -9 {KEEPER}; sleep {duration}"
    outcome = await run(keeper, script)
    assert outcome.end.cause is EndCause.KEEPER_LOST
    assert outcome.end.started
    assert outcome.end.still_running == ()  # the warden's word, so it is a proof
    assert outcome.end.facts.containment is Containment.KEEPER
    assert any("keeper was lost" in text for text in outcome.end.missing)
    assert outcome.out == "part\n"
    assert await survivors(duration) == []
    assert (await run(keeper, "echo next")).out == "next\n"


@pytest.mark.case("P79")
@pytest.mark.parametrize("order", [f"{KEEPER} {WARDEN}", f"{WARDEN} {KEEPER}"])
async def test_a_tool_that_kills_keeper_and_warden_is_swept_or_listed(keeper: Supervisor, order: str) -> None:
    duration = unique_duration()
    script = f'echo part; victims="{order}"; setsid sleep {duration} & kill -STOP $victims; kill -9 $victims; sleep {duration}'
    outcome = await run(keeper, script)
    assert outcome.end.cause is EndCause.KEEPER_LOST
    # Whichever dies first wakes the other (the host the warden, the kernel the keeper), and that one may be faster than the
    # second kill: then its word is the kernel's. Which of the two it was does not matter; that nothing is left does.
    if outcome.end.still_running == ():
        assert outcome.end.facts.containment is Containment.KEEPER
    else:
        assert outcome.end.still_running is None  # nothing was found, and nothing proves it
        assert outcome.end.facts.containment is Containment.BEST_EFFORT
        assert any("keeper and warden were lost" in text for text in outcome.end.missing)
    assert await survivors(duration) == []
    assert (await run(keeper, "echo next")).out == "next\n"


async def test_when_only_the_warden_is_lost_its_keepers_end_their_calls(keeper: Supervisor) -> None:
    duration = unique_duration()
    outcome = await run(keeper, f"setsid sleep {duration} & echo part; kill -9 {WARDEN}; sleep {duration}")
    assert outcome.end.cause is EndCause.KEEPER_LOST
    assert outcome.end.still_running == ()
    assert outcome.out == "part\n"
    assert await survivors(duration) == []


async def test_a_warden_that_is_lost_again_and_again_is_not_started_for_a_while(
    keeper: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        await run(keeper, f"kill -9 {WARDEN}; sleep 60")
    with anyio.fail_after(BOUND):
        for _ in range(3):
            with pytest.raises(SpawnRefused, match="lost 4 times"):
                await keeper.prepare(LaunchPlan(("true",)))
    monkeypatch.setattr(wardens, "LOSS_WINDOW", 0.0)
    assert (await run(keeper, "echo again")).out == "again\n"


@pytest.mark.case("P80")
@pytest.mark.parametrize("victims", [KEEPER, WARDEN, f"{WARDEN} {KEEPER}", f"{KEEPER} {WARDEN}"])
async def test_a_tool_that_stops_its_supervisors_is_still_timed_out(keeper: Supervisor, victims: str) -> None:
    duration = unique_duration()
    limit = 0.5
    outcome = await run(keeper, f"setsid sleep {duration} & echo part; kill -STOP {victims}; sleep {duration}", timeout=limit)
    assert outcome.end.cause is EndCause.TIMED_OUT
    assert outcome.seconds < limit + GRACE + 2 + SLACK
    assert outcome.end.still_running == ()
    assert await survivors(duration) == []
    assert (await run(keeper, "echo next")).out == "next\n"


@pytest.mark.case("P80")
async def test_a_keeper_that_is_stopped_for_ever_is_taken_over(keeper: Supervisor) -> None:
    duration = unique_duration()
    script = f"echo part; while kill -STOP {KEEPER}; do sleep .02; done; sleep {duration}"
    outcome = await run(keeper, script, timeout=1.0)
    assert outcome.end.still_running == ()
    assert outcome.end.cause in (EndCause.TIMED_OUT, EndCause.KEEPER_LOST)
    assert await survivors(duration) == []


@pytest.mark.case("P80")
async def test_a_stop_is_obeyed_although_keeper_and_warden_are_stopped(keeper: Supervisor) -> None:
    duration = unique_duration()
    script = f"kill -STOP {WARDEN} {KEEPER}; echo part; sleep {duration}"
    outcome = await run_until(keeper, script, part, grace=GRACE)
    assert outcome.end.cause is EndCause.STOPPED
    assert outcome.end.still_running == ()
    assert await survivors(duration) == []


async def test_a_process_that_is_killed_at_its_gate_never_started(keeper: Supervisor, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with anyio.fail_after(BOUND):
        prepared = await keeper.prepare(LaunchPlan(("touch", str(mark))))
        assert prepared.identity is not None
        os.kill(prepared.identity.pid, signal.SIGKILL)
        while alive(prepared.identity.pid):  # noqa: ASYNC110 - it is not our child
            await anyio.sleep(0.001)
        prepared.go()
        end = await prepared.wait()
    assert (end.started, end.cause, end.still_running) == (False, EndCause.SPAWN_FAILED, ())
    assert end.spawn_error is not None
    assert "start gate" in end.spawn_error.message
    assert not mark.exists()


async def test_idle_keepers_that_are_killed_cost_no_call(keeper: Supervisor) -> None:
    first = await run(keeper, "echo first; echo $PPID $(awk '{print $4}' /proc/$PPID/stat)")
    warden = int(first.out.split()[2])
    for _ in range(5):
        for idle in kernel.descendants(warden):  # keepers and their children at the gates
            with contextlib.suppress(ProcessLookupError):
                os.kill(idle.pid, signal.SIGKILL)
        assert (await run(keeper, "echo next")).out == "next\n"
    last = await run(keeper, "awk '{print $4}' /proc/$PPID/stat")
    assert int(last.out) == warden


async def test_the_children_at_the_gates_may_be_killed_too(keeper: Supervisor) -> None:
    first = await run(keeper, "echo $PPID $(awk '{print $4}' /proc/$PPID/stat)")
    warden = int(first.out.split()[1])
    gated = [child for idle in kernel.children(warden) for child in kernel.children(idle.pid)]
    for child in gated:
        os.kill(child.pid, signal.SIGKILL)
    assert (await run(keeper, "echo next")).out == "next\n"
