"""What a keeper says while SIGKILL takes its time: its host counts on a word within a second, or takes the keeper for dead."""

import math
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from toolrunner.process.keeping import call as call_module
from toolrunner.process.keeping import keeper as keeper_module
from toolrunner.process.keeping.call import Call
from toolrunner.process.keeping.gate import Gate
from toolrunner.process.keeping.keeper import Keeper, Links
from toolrunner.process.keeping.messages import decode
from toolrunner.process.keeping.system import Kernel

LEADER = 4_000_001  # above every default pid_max, so a mistake here signals nobody


class Unkillable(Kernel):
    """One child that no signal ends in time: it is stuck inside the kernel, or gives much memory back."""

    def children(self, pid: int | None = None) -> list[int]:
        return [LEADER] if pid is None else []

    def only_zombies(self) -> bool:
        return False

    def reap(self, pid: int = -1) -> tuple[int, int]:
        return 0, 0

    def kill(self, pid: int, number: int) -> None:
        pass

    def kill_group(self, group: int, number: int) -> None:
        pass


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[socket.socket, socket.socket, Gate, int, Links]]:
    """Both ends of the control socket, a gate whose child says nothing, a wake pipe and the links."""
    monkeypatch.setattr(call_module, "peek", lambda pid: None)
    monkeypatch.setattr(keeper_module, "REAP_BOUND", 0.1)  # long enough to say it, and nothing to wait for
    with ExitStack() as owned:
        control, host = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        gate, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        life, wake = os.pipe(), os.pipe()
        for sock in (control, host, gate, child):
            owned.callback(sock.close)
            sock.setblocking(False)
        for fd in (*life, *wake):
            owned.callback(os.close, fd)
        yield control, host, Gate(LEADER, gate), wake[0], Links(child, -1, life[0], -1)


@pytest.mark.parametrize("orders, timeout", [((b"go", b"stop 0"), math.inf), ((b"go",), 0.01)], ids=["stop", "timeout"])
def test_the_host_hears_of_a_stop_without_a_grace_when_its_end_takes_time(
    sockets: tuple[socket.socket, socket.socket, Gate, int, Links], orders: tuple[bytes, ...], timeout: float
) -> None:
    control, host, gate, wake, links = sockets
    for order in orders:
        host.send(order)
    Keeper(Call(Unkillable(), LEADER, timeout, 0.0), links, wake, control, gate, None).run()
    assert [decode(host.recv(4096))[0] for _ in range(2)] == ["stopping", "ended"]
