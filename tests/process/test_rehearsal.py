"""A rehearsed call is played to its end and happens to nobody; the warden loads little, because every keeper shares its heap."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from toolrunner.process import link
from toolrunner.process.keeping import rehearsal
from toolrunner.process.keeping.keeper import Keeper, Links
from toolrunner.process.keeping.messages import decode

LIMIT = 20.0


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A child and leader of its own group: whom a rehearsal that was not one would end."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.fixture
def stage() -> Iterator[tuple[Links, int]]:
    """What a keeper has: its links, and a pipe that wakes it."""
    with ExitStack() as owned:
        requests, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        life, wake = os.pipe(), os.pipe()
        for sock in (requests, other):
            owned.callback(sock.close)
        for fd in (*life, *wake):
            owned.callback(os.close, fd)
        yield Links(requests, -1, life[0], -1), wake[0]


def test_a_rehearsal_comes_to_its_end_and_nobody_is_signalled_or_reaped(
    bystander: subprocess.Popen[bytes], stage: tuple[Links, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[bytes] = []
    tell = Keeper.tell

    def listen(keeper: Keeper, message: bytes) -> None:
        said.append(message)
        tell(keeper, message)

    monkeypatch.setattr(Keeper, "tell", listen)
    before = sorted(os.listdir("/proc/self/fd"))
    rehearsal.rehearse(*stage, bystander.pid)
    assert [decode(message)[0] for message in said] == ["ready", "ended"]
    report = decode(said[-1])[1]
    assert (report["cause"], report["signals"], report["released"]) == ("stopped", "SIGTERM,SIGKILL", "1")
    assert bystander.poll() is None
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_rehearsal_without_descriptors_stays_undone(stage: tuple[Links, int], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(24, "too many open files")

    monkeypatch.setattr(rehearsal, "pair", refuse)
    rehearsal.rehearse(*stage, os.getpid())


def test_the_warden_loads_the_c_halves_only(tmp_path: Path) -> None:
    """enum alone, which `signal` and `socket` import, brings a fifth of the heap that every keeper's fork shares."""
    source = Path(link.ENTRY).read_text().replace("os.path.abspath(__file__)", repr(link.ENTRY))
    call = ".main(*map(int, sys.argv[1:4]))"
    assert call in source
    entry = tmp_path / "entry.py"
    entry.write_text(source.replace(call, "") + "    print(*sys.modules)\n")
    python = getattr(sys, "_base_executable", sys.executable)
    done = subprocess.run(
        [python, "-I", "-S", "-E", entry], capture_output=True, text=True, check=True, timeout=LIMIT, env={}, cwd="/"
    )
    assert {"enum", "functools", "selectors", "typing", "dataclasses", "re", "anyio"} & set(done.stdout.split()) == set()
