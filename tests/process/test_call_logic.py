"""The keeper's view of one call, event by event, against a kernel that does as it is told."""

import math
from types import SimpleNamespace

import pytest

from toolrunner.process.keeping import call as call_module
from toolrunner.process.keeping.call import Call
from toolrunner.process.keeping.messages import DRAIN_BOUND
from toolrunner.process.keeping.system import Kernel

LEADER = 4_000_001  # above every default pid_max, so a mistake here signals nobody


class ScriptedKernel(Kernel):
    def __init__(self) -> None:
        super().__init__()
        self.others: list[int] = []
        self.group_signals: list[int] = []

    def children(self, pid: int | None = None) -> list[int]:
        return [LEADER, *self.others] if pid is None else []

    def only_zombies(self) -> bool:
        return not self.others

    def reap(self, pid: int = -1) -> tuple[int, int]:
        return 0, 0

    def kill_group(self, group: int, number: int) -> None:
        assert group == LEADER
        self.group_signals.append(number)


class World:
    """A call whose clock and leader the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, timeout: float = math.inf, grace: float = 2.0) -> None:
        self.now = 100.0
        self.status: int | None = None
        self.kernel = ScriptedKernel()
        monkeypatch.setattr(call_module, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(call_module, "peek", lambda pid: self.status)
        self.call = Call(self.kernel, LEADER, timeout, grace)

    def exits(self, status: int | None = 0) -> None:
        self.status = status


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(monkeypatch)
    made.call.release()
    return made


def test_a_leader_that_leaves_nobody_ends_the_call_at_once(world: World) -> None:
    world.exits(7 << 8)
    assert world.call.observe_children() is False
    assert (world.call.finish, world.call.leader_status, world.call.cause) == (True, 7 << 8, "")


def test_a_leader_that_leaves_someone_starts_the_drain_once(world: World) -> None:
    world.kernel.others = [LEADER + 1]
    world.exits()
    assert world.call.observe_children() is True
    assert world.call.observe_children() is False
    assert world.call.next_time() == 100.0 + DRAIN_BOUND
    world.now += DRAIN_BOUND
    world.call.tick()
    assert (world.call.finish, world.call.drained_out) == (True, True)


@pytest.mark.parametrize("eof_first", [True, False])
def test_end_of_output_ends_the_drain(world: World, eof_first: bool) -> None:
    world.kernel.others = [LEADER + 1]
    if eof_first:
        world.call.eof()
        assert not world.call.finish  # the leader closed its streams and works on
    world.exits()
    world.call.observe_children()
    if not eof_first:
        assert not world.call.finish
        world.call.eof()
    assert (world.call.finish, world.call.drained_out) == (True, False)


def test_the_ladder_is_term_then_cont_then_the_grace(world: World) -> None:
    assert world.call.stop("stopped", 2.0) is True
    assert world.kernel.group_signals == [15, 18]
    assert (world.call.finish, world.call.next_time()) == (False, 102.0)
    world.now = 102.0
    world.call.tick()
    assert world.call.finish


def test_a_shorter_grace_shortens_and_a_longer_one_does_not(world: World) -> None:
    world.call.stop("stopped", 2.0)
    assert world.call.stop("stopped", 5.0) is False
    assert world.call.next_time() == 102.0
    world.call.stop("stopped", 0.0)
    assert world.call.finish
    assert world.kernel.group_signals == [15, 18]  # each process gets its one SIGTERM


def test_the_leaders_death_does_not_end_the_ladder(world: World) -> None:
    world.kernel.others = [LEADER + 1]
    world.call.stop("stopped", 2.0)
    world.exits(15)
    assert world.call.observe_children() is False
    assert not world.call.finish
    world.kernel.others = []
    world.call.observe_children()
    assert world.call.finish


@pytest.mark.case("P59")
def test_a_stop_after_the_leaders_exit_is_no_stop_of_it(world: World) -> None:
    world.kernel.others = [LEADER + 1]
    world.exits()  # its SIGCHLD has not been read yet
    assert world.call.stop("stopped", 2.0) is False
    assert (world.call.cause, world.call.finish, world.kernel.group_signals) == ("", True, [])


@pytest.mark.case("P59")
def test_a_leader_that_goes_between_the_order_and_the_kill_was_not_stopped_by_us(world: World) -> None:
    world.call.stop("stopped", 0.0)
    world.exits()
    world.call.settle_cause()
    assert (world.call.cause, world.call.delivered, world.call.signals) == ("", None, [])


def test_the_end_of_the_output_does_not_end_the_ladder(world: World) -> None:
    world.kernel.others = [LEADER + 1]
    world.call.stop("stopped", 2.0)
    world.exits(15)
    world.call.observe_children()
    world.call.eof()
    assert not world.call.finish  # who closed its streams may be cleaning up in its grace


def test_the_first_cause_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, timeout=1.0)
    world.call.release()
    world.call.stop("stopped", 5.0)
    world.now += 1.0
    assert world.call.tick() is False
    assert world.call.cause == "stopped"


def test_the_limit_counts_from_the_release_and_uses_the_plans_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, timeout=1.0, grace=3.0)
    assert world.call.next_time() == math.inf
    world.now = 200.0
    world.call.release()
    assert world.call.next_time() == 201.0
    world.now = 201.0
    assert world.call.tick() is True
    assert (world.call.cause, world.call.next_time()) == ("timed_out", 204.0)
    assert world.call.stop("stopped", 0.0) is False
    assert (world.call.cause, world.call.finish) == ("timed_out", True)


def test_a_limit_that_comes_while_leftovers_drain_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, timeout=0.05)
    world.call.release()
    world.kernel.others = [LEADER + 1]
    world.exits()
    world.call.observe_children()
    world.now += 0.06
    assert world.call.tick() is False
    assert world.call.cause == ""


def test_before_the_release_a_stop_only_shuts_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    assert world.call.stop("stopped", 2.0) is False
    assert (world.call.finish, world.call.cause, world.kernel.group_signals) == (True, "stopped", [])


def test_a_lost_host_ends_everything_at_once_and_keeps_an_earlier_cause(world: World) -> None:
    world.call.stop("stopped", 2.0)
    world.call.lost()
    assert (world.call.finish, world.call.cause) == (True, "stopped")
