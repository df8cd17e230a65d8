"""One warden, seen from its host: started, asked and ended here. The host is no subreaper and never waits for "any child"."""

import errno
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import final

import anyio

from toolrunner.process.keeping.messages import REAP_BOUND, decode, parse_listing, unhexed
from toolrunner.process.keeping.system import stat

ENTRY = str(Path(__file__).parent / "keeping" / "__main__.py")

END_BOUND = 2 * REAP_BOUND + 1.0
"""Seconds for a warden to end: its keepers may need R, then its own sweep another R."""

ANSWER_BOUND = REAP_BOUND + 1.0
"""Seconds for a warden's answer: it waits up to R for what it adopted."""

FEW = 0.002
"""Seconds between two tries where nothing tells that another one is worth it: about what a keeper needs to take a request."""

Listing = list[tuple[int, int, int, str, str]]


@final
class Link:
    """A running warden."""

    def __init__(self, python: str, standing: tuple[bytes, ...]) -> None:
        self.python = python
        self.standing = standing  # what the host was (ids, capabilities, namespaces) when it was started
        self.closed = False
        self.proved = False  # a keeper of it has answered: this interpreter can do it
        self.control, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.requests, requests = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.process = self._spawn(control.fileno(), requests.fileno())
        except BaseException:
            self.control.close()
            self.requests.close()
            raise
        finally:
            control.close()
            requests.close()
        self.control.setblocking(False)
        self.requests.setblocking(False)
        facts = stat(self.process.pid)
        self.starttime = facts.starttime if facts else 0

    def _spawn(self, control: int, requests: int) -> subprocess.Popen[bytes]:
        command = [self.python, "-I", "-S", "-E", ENTRY, str(control), str(requests), str(os.getpid())]
        null = subprocess.DEVNULL
        return subprocess.Popen(
            command, stdin=null, stdout=null, stderr=null, pass_fds=(control, requests), env={}, cwd="/", start_new_session=True
        )

    @property
    def pid(self) -> int:
        """The warden's pid."""
        return self.process.pid

    def alive(self) -> bool:
        """Whether the warden runs. Reaps it when it does not."""
        return not self.closed and self.process.poll() is None

    @property
    def was_killed(self) -> bool:
        """Whether somebody ended it, the kernel short of memory perhaps: that says nothing about its interpreter."""
        return self.process.returncode == -signal.SIGKILL

    def wake(self) -> None:
        """Continue the warden if something has stopped it; it then does the same for its keepers."""
        facts = stat(self.pid)
        if facts is not None and facts.state in "Tt" and facts.starttime == self.starttime:
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        try:
            self.process.send_signal(number)
        except PermissionError:  # this host gave up the user id the warden was started with
            pass

    async def adopt(self, keeper: int) -> Listing | None:
        """Have this keeper gone and everything it left swept. What remains, () as proof; None when the warden is gone too."""
        answer = await self._ask(b"adopt %d" % keeper)
        return None if answer is None else parse_listing(answer["left"])

    async def facts(self) -> tuple[bool, str] | None:
        """Whether keepers work here, and what to say about it. None when the warden gives no answer."""
        answer = await self._ask(b"facts")
        return None if answer is None else (answer["fit"] == "1", unhexed(answer["why"]))

    async def _ask(self, question: bytes) -> dict[str, str] | None:
        # Each question brings its own answer socket: callers in several event loops share one warden.
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                if not await self._sent(question, theirs.fileno()):
                    return None
            self.wake()
            with anyio.move_on_after(ANSWER_BOUND):
                await anyio.wait_readable(ours)
                answer = ours.recv(4096)
                return decode(answer)[1] if answer else None
        return None

    async def _sent(self, question: bytes, fd: int) -> bool:
        """Give the warden a question. False: it is gone, or so stuck that its queue is full."""
        until = time.monotonic() + ANSWER_BOUND
        while True:
            try:
                socket.send_fds(self.control, [question], [fd])
            except OSError as exc:
                # Of this user too many descriptors are under way: those of requests, which keepers are taking right now.
                if exc.errno != errno.ETOOMANYREFS or time.monotonic() > until:
                    return False
            else:
                return True
            await anyio.sleep(FEW)

    async def settle(self) -> None:
        """Something of it went away: if that was the warden itself, wait until it is really gone and can be replaced."""
        if await self.facts() is None:
            await exited(self.process, ANSWER_BOUND)

    def forget(self) -> None:
        """Close our copies in a forked child: they would keep the warden from seeing its host's end."""
        self.closed = True
        self.control.close()
        self.requests.close()
        self.process.returncode = 0  # not this process's child

    async def end(self) -> None:
        """Ask the warden to end and wait for it; bounded, then killed. Safe to call from a cancelled scope."""
        if self.closed:
            return
        self.closed = True
        try:
            self.control.send(b"close")
        except OSError:
            pass
        self.control.close()
        self.requests.close()
        self.wake()
        with anyio.CancelScope(shield=True):
            if not await exited(self.process, END_BOUND):
                self._signal(signal.SIGKILL)
                await exited(self.process, ANSWER_BOUND)


async def exited(process: subprocess.Popen[bytes], bound: float) -> bool:
    """Wait until this child has exited, and reap it. False when `bound` seconds passed first."""
    until = time.monotonic() + bound
    try:
        fd = os.pidfd_open(process.pid)
    except (OSError, AttributeError):
        fd = -1
    try:
        if fd >= 0:
            with anyio.move_on_after(bound):
                await anyio.wait_readable(fd)
        else:
            while process.poll() is None and time.monotonic() < until:  # noqa: ASYNC110 - nothing announces it here
                await anyio.sleep(0.01)
    finally:
        if fd >= 0:
            os.close(fd)
    return process.poll() is not None
