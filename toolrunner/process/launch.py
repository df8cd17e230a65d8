"""From a plan to a request: argv, environment, descriptors and present limits of the host, checked and packed. No state.

Everything that can be refused before the start gate is refused here or by the keeper's set-up; nothing ran then.
"""

import errno
import os
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import final

from toolrunner.process.ending import SpawnErrorKind, SpawnRefused
from toolrunner.process.keeping.messages import encode, pack
from toolrunner.process.plan import QUIET_ENVIRONMENT, LaunchPlan, Leftovers, Stdin
from toolrunner.process.request import Request
from toolrunner.process.standing import limits
from toolrunner.process.terminal import open_terminal

try:
    import fcntl
except ImportError:  # Windows: import must work, process tools refuse
    fcntl = None  # type: ignore[assignment]

MARKER = "TOOLRUNNER_PROCESS"
"""Environment variable that marks every process of one call: what a sweep without a keeper looks for."""

STRING_LIMIT = 32 * 4096
"""MAX_ARG_STRLEN (execve(2)): one argument or variable, with its NUL. More is E2BIG whatever the stack limit says."""

TERM_DEFAULT = "xterm"
"""TERM for a terminal of ours where the host has none: what most programs that draw can do with."""

NO_TERMINAL = frozenset({"TERM", "NO_COLOR"})
"""Of QUIET_ENVIRONMENT, what says that there is no terminal that could show it."""

PIPE_SIZE = 1 << 18
"""Bytes a pipe holds, where the host may ask for it: fewer switches while a tool writes much."""


@final
@dataclass(slots=True)
class Ends:
    """The host's ends of one launch. `stdin` is None unless there is data to feed, `stderr` with a terminal (`stdout`).

    `status` is what a wrapper writes to.
    """

    control: socket.socket
    stdout: int
    stderr: int | None
    stdin: int | None
    status: int | None = None


def arguments(plan: LaunchPlan) -> list[bytes]:
    """The plan's argv as bytes. Raises SpawnRefused for a NUL or an argument that the kernel cannot take."""
    argv = [os.fsencode(part) for part in plan.argv]
    for index, part in enumerate(argv):
        _check(part, f"argument {index}" if index else "the command's name")
    return argv


def environment(plan: LaunchPlan, mark: str) -> list[bytes]:
    """`NAME=value` of the call: see `LaunchPlan`. Raises SpawnRefused for what no environment can hold."""
    merged: dict[bytes, bytes] = {}
    if not plan.clear_env:
        merged.update(os.environb)
        merged.update((os.fsencode(name), os.fsencode(value)) for name, value in _quiet(plan).items())
    for name, value in plan.env.items():
        key = os.fsencode(name)
        if not key or b"=" in key:
            raise SpawnRefused(SpawnErrorKind.SETUP, f"environment variable {name!r}: a name must not be empty or hold '='")
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = os.fsencode(value)
    merged[MARKER.encode()] = mark.encode()
    entries = [name + b"=" + value for name, value in merged.items()]
    for entry in entries:
        _check(entry, "environment variable " + os.fsdecode(entry.partition(b"=")[0]))
    return entries


def _quiet(plan: LaunchPlan) -> Mapping[str, str]:
    """What is set because nobody can answer a prompt, an editor or a pager; less with a terminal, see `LaunchPlan.tty`."""
    if plan.tty is None:
        return QUIET_ENVIRONMENT
    term = {"TERM": os.environ.get("TERM") or TERM_DEFAULT}
    if plan.types_input:
        return term
    return {name: value for name, value in QUIET_ENVIRONMENT.items() if name not in NO_TERMINAL} | term


def _check(part: bytes, what: str) -> None:
    if b"\0" in part:
        raise SpawnRefused(SpawnErrorKind.SETUP, f"{what} holds a NUL byte", errno.EINVAL)
    if len(part) >= STRING_LIMIT:
        text = f"{what} is {len(part):,} bytes long; the kernel takes {STRING_LIMIT - 1:,} in one string"
        raise SpawnRefused(SpawnErrorKind.TOO_LONG, text, errno.E2BIG)


def open_directory(plan: LaunchPlan) -> int:
    """The working directory as an O_PATH descriptor: what it names now stays what the call gets. Raises SpawnRefused."""
    path = plan.cwd if plan.cwd is not None else "."
    try:
        return os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError) as exc:
        number = getattr(exc, "errno", None)
        # Python's own words for a NUL differ between its versions.
        why = os.strerror(number) if number else "its name holds a NUL" if "\0" in os.fsdecode(path) else str(exc)
        raise SpawnRefused(SpawnErrorKind.SETUP, f"working directory {os.fsdecode(path)!r}: {why}", number) from exc


def launch(requests: socket.socket, request: Request, umask: int) -> Ends:
    """Send the request. Raises SpawnRefused, or OSError from the queue itself: EAGAIN when it is full, EPIPE when it is dead."""
    plan = request.plan
    argv, env = arguments(plan), environment(plan, request.mark)
    with ExitStack() as sent, ExitStack() as kept:  # both are closed if a step fails; what was sent is closed anyway
        try:
            ends, fds = _open(plan, request.dirfd, sent, kept)
            memfd = _sealed(pack(argv, env), sent)
            passed = {**plan.pass_fds, **{number: _sealed(content, sent) for number, content in plan.data_fds.items()}}
            if plan.wrapping is not None and plan.wrapping.status_fd is not None:
                ends.status, passed[plan.wrapping.status_fd] = output_pipe(sent, kept)
        except SpawnRefused:
            raise
        except OSError as exc:
            raise SpawnRefused.from_os("descriptors for the process", exc) from exc
        timeout = "inf" if plan.timeout is None else repr(plan.timeout)
        targets = sorted(passed)
        words = encode(
            "run", args=len(argv), timeout=timeout, grace=plan.kill_after, umask=umask, limits=limits(plan.limits),
            fds=",".join(map(str, targets)), tty=int(plan.tty is not None),
            keep=int(plan.leftovers is Leftovers.KEEP), own=plan.wrapping.generations if plan.wrapping is not None else 0,
            user="" if plan.become is None else "{}:{}".format(*plan.become),
            cgroup=request.cgroup.name if request.cgroup is not None else "",
        )  # fmt: skip
        if request.cgroup is not None:
            fds.insert(1, request.cgroup.parent)
        socket.send_fds(requests, [words], [memfd, *fds, *(passed[target] for target in targets)], socket.MSG_NOSIGNAL)
        kept.pop_all()
        return ends


def _open(plan: LaunchPlan, dirfd: int | None, sent: ExitStack, kept: ExitStack) -> tuple[Ends, list[int]]:
    """The host's ends, and the descriptors to send: control, cwd, stdin, stdout, stderr."""
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    kept.callback(control.close)
    sent.callback(theirs.close)
    control.setblocking(False)
    cwd = dirfd if dirfd is not None else _own(open_directory(plan), sent)
    if plan.tty is not None:
        master, slave = open_terminal(plan.tty, sent, kept)
        stdin, feed = _typed(master, slave, kept) if plan.types_input else open_stdin(plan, sent, kept)
        return Ends(control, master, None, feed), [theirs.fileno(), cwd, stdin, slave, slave]
    stdin, feed = open_stdin(plan, sent, kept)
    stdout, stdout_in = output_pipe(sent, kept)
    stderr, stderr_in = output_pipe(sent, kept)
    return Ends(control, stdout, stderr, feed), [theirs.fileno(), cwd, stdin, stdout_in, stderr_in]


def _typed(master: int, slave: int, kept: ExitStack) -> tuple[int, int]:
    """Input through the terminal: the tool's end, and an end of ours that the feed can close while output is still read."""
    return slave, _own(os.dup(master), kept)


def output_pipe(sent: ExitStack, kept: ExitStack) -> tuple[int, int]:
    """Our end and the tool's end of one output stream."""
    read_end, write_end = os.pipe()
    _own(write_end, sent)
    os.set_blocking(_own(read_end, kept), False)
    try:  # larger, where the user's quota of pipe memory allows it
        fcntl.fcntl(read_end, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    except (OSError, AttributeError):
        pass
    return read_end, write_end


def open_stdin(plan: LaunchPlan, sent: ExitStack, kept: ExitStack) -> tuple[int, int | None]:
    """The tool's stdin, and our end to feed."""
    if isinstance(plan.stdin, bytes) or plan.stdin is Stdin.OPEN:
        read_end, write_end = os.pipe()
        os.set_blocking(_own(write_end, kept), False)
        return _own(read_end, sent), write_end
    if plan.stdin is Stdin.INHERIT:
        os.fstat(0)  # a daemon's host may have closed it
        return 0, None
    path = plan.stdin if isinstance(plan.stdin, Path) else Path(os.devnull)
    try:
        return _own(os.open(path, os.O_RDONLY | os.O_CLOEXEC), sent), None
    except OSError as exc:
        if exc.errno in (errno.EMFILE, errno.ENFILE):
            raise
        raise SpawnRefused.from_os(f"stdin from {str(path)!r}", exc) from exc


def _own(fd: int, stack: ExitStack) -> int:
    stack.callback(os.close, fd)
    return fd


def _sealed(content: bytes, sent: ExitStack) -> int:
    """A memfd that nobody can change any more: what was checked is what is run."""
    fd = _own(os.memfd_create("toolrunner-request", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), sent)
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.lseek(fd, 0, os.SEEK_SET)  # whoever gets it reads on from where we stand
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return fd
