"""The warden: one per host process. Forks keepers ahead of need and ends whatever a dead keeper leaves behind.

It is the subreaper above all keepers: a child of the warden that is no keeper belongs to a dead one, and is killed. It waits
with WUNTRACED, so a tool that stops its keeper does not stop the call's clock for long. Nothing in here may raise: a refused
fork becomes an answer. State: `Pool` (idle and busy keepers) and the questions not answered yet; only this loop changes them.
"""

import gc
import os
import select
import signal
import socket
import time
from collections.abc import Callable

from toolrunner.process.keeping.keeper import Links, refuse
from toolrunner.process.keeping.messages import REAP_BOUND, encode, hexed, listing
from toolrunner.process.keeping.pool import Pool
from toolrunner.process.keeping.rehearsal import PLAYS, rehearse
from toolrunner.process.keeping.selftest import Findings, examine
from toolrunner.process.keeping.sweep import describe, sweep
from toolrunner.process.keeping.system import (
    CATCHABLE,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    Cut,
    Kernel,
    disguise,
    prctl,
    receive,
)
from toolrunner.process.keeping.waking import pause_on, wake_pipe

STOPS = 3
"""A keeper stopped this often is killed and its orphans adopted: a tool that goes on stopping it means it."""

RETRY_FORK = 0.1
"""Seconds until a refused fork is tried again."""


class Question:
    """The host asks that a keeper be gone: answered on its own socket when nothing of it is left, or after `REAP_BOUND`."""

    def __init__(self, keeper: int, reply: socket.socket) -> None:
        self.keeper, self.reply = keeper, reply
        self.until = time.monotonic() + REAP_BOUND


class Warden:
    """The loop. `orphans` are children that SIGKILL has not ended yet; they are looked at again at each death."""

    def __init__(self, kernel: Kernel, findings: Findings, control: socket.socket, requests: socket.socket, host: int) -> None:
        self.kernel, self.findings, self.control, self.requests, self.host = kernel, findings, control, requests, host
        self.wake = wake_pipe()
        self.notes, notes_in = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        life_out, self.life = os.pipe2(os.O_CLOEXEC)
        private = (self.wake, self.notes, self.life, control.fileno())
        self.pool = Pool(kernel, Links(requests, notes_in, life_out, host), private)
        self.questions: list[Question] = []
        self.orphans = False
        self.closing = False
        self.actions = {
            requests.fileno(): self.refuse_one,
            host: self.on_host,
            self.notes: self.on_notes,
            self.wake: self.on_wake,
            control.fileno(): self.on_order,
        }
        self.poll = select.poll()
        for fd in self.actions:
            if fd >= 0 and fd != requests.fileno():
                self.poll.register(fd, select.POLLIN)

    def run(self) -> None:
        """Until the host is gone or says close."""
        while not self.closing:
            starved = not self.findings.fit or not self.pool.fill()
            if starved:  # nobody idle and no fork: answer the requests here
                self.poll.register(self.requests.fileno(), select.POLLIN)
            ready = {fd for fd, _ in self.poll.poll(self.patience(starved=starved))}
            if starved:
                self.poll.unregister(self.requests.fileno())
            for fd in self.actions:  # in their order: whom a keeper's note names is known before its death is
                if fd in ready:
                    self.actions[fd]()
            self.answer()
        self.close()

    def on_notes(self) -> None:
        self.pool.took(os.read(self.notes, 4096))

    def on_wake(self) -> None:
        os.read(self.wake, 4096)
        self.on_deaths()

    def on_host(self) -> None:
        self.closing = True

    def patience(self, *, starved: bool) -> float | None:
        """Milliseconds for poll."""
        times = [question.until for question in self.questions]
        if starved and self.findings.fit:
            times.append(time.monotonic() + RETRY_FORK)
        if self.pool.due is not None:
            times.append(self.pool.due)
        return max(0.0, min(times) - time.monotonic()) * 1000 + 1 if times else None

    def refuse_one(self) -> None:
        """Answer a request that no keeper can take."""
        if self.findings.fit and self.pool.fill():
            return  # there is room again since the last try: the new keeper takes it
        try:
            fds = receive(self.requests)[1]
        except Cut as cut:
            fds = [-1, *cut.reply]
        except OSError:
            self.closing = True
            return
        if not fds:
            self.closing = True
            return
        for fd in fds[2:] + [fd for fd in fds[:1] if fd >= 0]:
            os.close(fd)
        for fd in fds[1:2]:
            reply = socket.socket(fileno=fd)
            if self.findings.fit:
                refuse(reply, self.pool.fork_error, "fork")
            else:
                self.reply(reply, encode("unfit", why=hexed("; ".join(self.findings.reasons))))

    def on_deaths(self) -> None:
        """Reap, continue stopped keepers, end what dead ones left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
                if pid == 0:
                    break
                if os.WIFSTOPPED(status):
                    stopped = self.pool.stopped(pid)
                    if stopped:
                        os.kill(pid, signal.SIGKILL if stopped >= STOPS else signal.SIGCONT)
                else:
                    self.pool.died(pid)
        except ChildProcessError:
            pass
        self.end_orphans()

    def end_orphans(self) -> None:
        """One round of the sweep over children that are no keepers. The next death of one of them calls again."""
        swept = sweep(self.kernel, 0.0, lambda _: None, lambda pid, _: self.pool.died(pid), self.pool.holds)
        self.orphans = bool(swept.left)

    def on_order(self) -> None:
        """`adopt KEEPER` with a reply socket, `facts` with one, or `close`; EOF is the host's death."""
        try:
            order, fds = receive(self.control)
        except Cut:
            return
        except OSError:
            order, fds = b"", []
        word, _, value = order.partition(b" ")
        if word == b"adopt" and fds:
            keeper = int(value)
            if self.pool.holds(keeper):  # still there, so it answers no more: its orphans come to us
                os.kill(keeper, signal.SIGKILL)
            self.questions.append(Question(keeper, socket.socket(fileno=fds[0])))
        elif word == b"facts" and fds:
            message = encode("facts", fit=int(self.findings.fit), why=hexed("; ".join(self.findings.reasons)))
            self.reply(socket.socket(fileno=fds[0]), message)
        else:
            self.closing = True

    def answer(self) -> None:
        """Answer what can be answered."""
        now = time.monotonic()
        for question in self.questions[:]:
            over = not self.pool.holds(question.keeper) and not self.orphans
            if over or now >= question.until:
                left = [] if over else [pid for pid in self.kernel.children() if not self.pool.holds(pid)]
                self.questions.remove(question)
                self.reply(question.reply, encode("gone", left=listing([describe(pid) for pid in left])))

    @staticmethod
    def reply(asker: socket.socket, message: bytes) -> None:
        try:
            asker.send(message)
        except OSError:  # it gave up
            pass
        asker.close()

    def close(self) -> None:
        """Busy keepers sweep (they read EOF from `life`), idle ones are ended, then what is left is swept here.

        Idle ones last: until then they wake us, should a tool stop us even now.
        """
        os.close(self.life)
        self.requests.close()
        until = time.monotonic() + REAP_BOUND + 0.5  # a keeper's own bound, and a moment for its report
        for pid in self.pool.busy:
            os.kill(pid, signal.SIGCONT)
        self.wait_while(lambda: bool(self.pool.busy), until)
        for pid in self.pool.idle:
            os.kill(pid, signal.SIGKILL)
        self.wait_while(lambda: bool(self.pool.idle), until)
        sweep(self.kernel, time.monotonic() + REAP_BOUND, lambda seconds: pause_on(self.wake, seconds), lambda *_: None)

    def wait_while(self, condition: Callable[[], bool], until: float) -> None:
        """See to deaths and stops while `condition` holds, at most `until`."""
        while condition() and time.monotonic() < until:
            self.on_deaths()
            if condition():
                pause_on(self.wake, 0.05)


def main(control_fd: int, request_fd: int, host_pid: int) -> None:
    """Become the warden and be it."""
    prctl(PR_SET_DUMPABLE, 0)  # first of all: /proc/PID/environ, fd and mem, ptrace and pidfd_getfd are closed to tools
    disguise(b"tr-warden")
    prctl(PR_SET_PDEATHSIG, signal.SIGCONT)  # harmless while awake; if a tool stopped us, the host's death wakes us
    for number in CATCHABLE:
        if number != signal.SIGCHLD:
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                continue
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for fd in (control_fd, request_fd):
        os.set_inheritable(fd, False)
    os.chdir("/")
    os.umask(0o077)
    kernel = Kernel()
    findings = examine(kernel) if prctl(PR_SET_CHILD_SUBREAPER, 1) else Findings(["this kernel has no child subreaper"])
    host = watch_host(kernel, host_pid)
    warden = Warden(kernel, findings, socket.socket(fileno=control_fd), socket.socket(fileno=request_fd), host)
    for _ in range(PLAYS):
        rehearse(warden.pool.links, warden.wake, os.getpid())
    # Every keeper is a fork of this heap: nothing may be moved or collected, or the pages stop being shared.
    gc.collect()
    gc.freeze()
    gc.disable()
    warden.run()


def watch_host(kernel: Kernel, host_pid: int) -> int:
    """A pidfd of the host: a forked copy of it keeps its sockets open, so EOF alone would not tell of its death."""
    if not kernel.pidfds or os.getppid() != host_pid:
        return -1
    try:
        return os.pidfd_open(host_pid)
    except OSError:
        return -1
