"""Messages between host, warden and keepers: whole, or refused with every descriptor that came along."""

import os
import socket

import pytest

from toolrunner.process.keeping.messages import decode, encode, listing, parse_listing
from toolrunner.process.keeping.system import Cut, receive

pytestmark = pytest.mark.anyio


def test_a_request_that_was_cut_leaves_no_descriptor_open() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    before = set(os.listdir("/proc/self/fd"))
    with ours, theirs:
        socket.send_fds(ours, [b"x" * 100], [0, 1, 2])
        with pytest.raises(Cut) as caught:
            receive(theirs, 10)
        assert len(caught.value.reply) == 1
        os.close(caught.value.reply[0])
        assert set(os.listdir("/proc/self/fd")) == before
        socket.send_fds(ours, [b"x"], [0])
        data, fds = receive(theirs)
        assert (data, os.get_inheritable(fds[0])) == (b"x", False)
        os.close(fds[0])


def test_messages_survive_the_wire() -> None:
    entries = [(1, 0, 5, "a b:c,d=é", "EPERM"), (2, -1, 0, "", "")]
    kind, words = decode(encode("ended", left=listing(entries), empty=""))
    assert (kind, parse_listing(words["left"]), words["empty"]) == ("ended", entries, "")
    assert (
        len(
            encode("ended", left=listing([(4194304, 4294967295, 2**40, "é" * 15, "EPERM")] * 99), leftovers=listing(entries * 99))
        )
        < 4096
    )
