"""Descriptors under way: of a user without privileges no more than one process may have open, whoever sends them (unix(7))."""

import os
import resource
import signal
import socket
from pathlib import Path

import pytest
from plain_user import PlainUser
from process.host import host_running

from toolrunner.process.keeping import gate as gate_module
from toolrunner.process.keeping import leader
from toolrunner.process.keeping.gate import fork_gate
from toolrunner.process.keeping.messages import SAMPLE

BURST = """
import resource
async def main(supervisor):
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    for _ in range(3):
        ended = []
        async def one():
            ended.append((await run(supervisor, 'echo', 'ran')).facts.stdout)
        async with anyio.create_task_group() as tasks:
            for _ in range(14):
                tasks.start_soon(one)
        say(ended.count('ran\\n'))
"""


@pytest.mark.case("P84")
def test_a_burst_of_requests_with_more_descriptors_than_may_be_under_way_is_served(as_plain_user: PlainUser) -> None:
    """A keeper that could not pass its request on waited for ever for the end of a child that lived."""
    with host_running(as_plain_user.home, BURST, user=as_plain_user) as host:
        assert [host.line() for _ in range(3)] == ["14"] * 3
        assert host.rest()[0] == 0


def test_a_living_child_that_cannot_be_sent_the_descriptors_is_told_from_one_that_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(109, "too many references")

    made = fork_gate()
    monkeypatch.setattr(gate_module, "send_fds", refuse)
    assert made.hand_over(SAMPLE, [], -1) is False
    assert os.waitpid(made.pid, os.WNOHANG) == (0, 0)  # nobody ended it, or waits for its end
    made.end()
    with pytest.raises(ChildProcessError):
        os.waitpid(made.pid, os.WNOHANG)


def test_a_child_that_is_forked_for_a_request_has_it_and_nothing_else(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    host, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    memfd = os.memfd_create("request")
    os.write(memfd, b"ls\0/proc/self/fd\0PATH=/bin:/usr/bin")
    out, out_in = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (folder, memfd, out_in, null):
        os.set_inheritable(fd, False)
    made = fork_gate(SAMPLE, [memfd, control.fileno(), folder, null, out_in, null])
    control.close()
    os.close(out_in)
    host.settimeout(60)
    try:
        assert host.recv(256).startswith(b"ready ")
        assert host.recv(256) == b""  # its copy is closed before anything runs
        made.release()
        listed = b""
        while part := os.read(out, 4096):
            listed += part
        assert listed.split() == [b"0", b"1", b"2", b"3"]  # 3: the folder that is listed
        assert os.waitpid(made.pid, 0)[1] == 0
    finally:
        for fd in (folder, memfd, out, null):
            os.close(fd)
        host.close()
        made.sock.close()
        with pytest.raises(ProcessLookupError):
            os.kill(made.pid, signal.SIGKILL)


@pytest.mark.case("P84")
@pytest.mark.parametrize("spare", range(10))
def test_a_child_that_lacks_descriptors_for_its_rehearsal_goes_on_without_and_keeps_none(spare: int) -> None:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.closerange(3, 65536)
            resource.setrlimit(resource.RLIMIT_NOFILE, (3 + spare, 3 + spare))
            leader.rehearse()
            os.closerange(0, 3)  # one of them is free for the look
            resource.setrlimit(resource.RLIMIT_NOFILE, (1, 3 + spare))
            status = len(os.listdir("/proc/self/fd")) - 1
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
