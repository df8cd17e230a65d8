"""The child at the start gate, from its fork to its exec: it sets itself up as the request says, and waits for the byte.

Everything in here runs in that child. It is about to be a command of somebody else's, so it holds nothing of ours but the gate's
socket and, until it has said that it is ready, the host's.
"""

import errno
import fcntl
import os
import resource
import signal
import socket
import termios

from toolrunner.process.keeping.messages import SAMPLE, decode, encode, pack, unpack
from toolrunner.process.keeping.system import CATCHABLE, receive, stat

DEFAULT_PATH = b"/bin:/usr/bin"
"""Searched when the call's environment has no PATH: what execvp(3) would use."""

NOT_RUN = 125
"""Exit status of a child that never exec'd. Nobody reads it; it only is none of a command's."""


class SetupFailed(Exception):
    """One step of the child's set-up failed; `step` says which in words for people."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(step)
        self.step, self.number = step, number


def wait_at_gate(fd: int, request: bytes, fds: list[int]) -> None:
    """The child's whole life before exec. Without a request it waits for one."""
    # Copies of the keeper's sockets here would hide its death from the host.
    close_others([fd, *fds])
    os.setsid()
    plain_signals()
    own = stat(os.getpid())
    ready = encode("ready", keeper=os.getppid(), pid=os.getpid(), starttime=own.starttime if own else 0)
    sock = socket.socket(fileno=fd)
    if not request:
        rehearse()
        request, fds = receive(sock)
        if not request:
            return
    try:
        words = decode(request)[1]
        sock = set_up(sock, words, fds)
        argv, environment = unpack(read_all(fds[0]), int(words["args"]))
        set_limits(words["limits"])
        become(words["user"])
    except SetupFailed as failure:
        sock.send(f"fail {failure.number} {failure.step}".encode())
        return
    report(sock, fds[1], words, ready)
    if sock.recv(1) == b"g":
        number, interpreter = execute(argv, environment)
        sock.send(f"x {number} {interpreter:d}".encode())


def close_others(kept: list[int]) -> None:
    """Close all that the fork copied but these and the three streams."""
    begin = 3
    for fd in sorted(kept):
        os.closerange(begin, fd)
        begin = fd + 1
    os.closerange(begin, 65536)


def report(sock: socket.socket, control: int, words: dict[str, str], ready: bytes) -> None:
    """Say that it is set up: to the host at once, as its keeper would only pass it on; to the keeper if that has more to do."""
    host = socket.socket(fileno=control)
    if words["cgroup"]:
        sock.send(b"set")
    else:
        host.send(ready)
    host.close()


def rehearse() -> None:
    """Do once what will have to be quick (see `rehearsal`). Nothing changes: streams are /dev/null, the folder is / already."""
    fds: list[int] = []
    try:
        for path in ("/dev/null", "/dev/null", "/", *("/dev/null",) * 3):
            fds.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))  # noqa: PERF401 - those before one that fails are closed below
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = decode(SAMPLE)[1]
        ours = set_up(ours, words, fds)
        unpack(read_all(fds[0]) + pack([b"tool", b"argument"], [b"PATH=/bin"]), 2)
        set_limits(words["limits"])
        theirs.send(b"g")
        ours.recv(1)
        execute([b"/"], {b"PATH": b"/bin"})  # a folder is never executable
        ours.close()
        theirs.close()
    except OSError:  # the descriptors do not suffice for a play; for a request, which needs fewer, they still may
        pass
    for fd in fds:
        os.close(fd)


def plain_signals() -> None:
    """Default dispositions and an empty mask: what the warden ignores would be inherited over exec."""
    signal.set_wakeup_fd(-1)
    for number in CATCHABLE:
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):  # glibc keeps two real-time signals for itself
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def read_all(fd: int) -> bytes:
    """The memfd's content."""
    return os.pread(fd, os.fstat(fd).st_size, 0)


def set_up(sock: socket.socket, words: dict[str, str], fds: list[int]) -> socket.socket:
    """Working directory, umask, descriptors. `fds` is changed in place; the socket comes back, perhaps at a new number."""
    targets = [int(number) for number in words["fds"].split(",") if number]
    if targets:  # nothing of ours may sit where dup2 is about to put something of the tool's
        above = max(targets) + 1
        fds[:] = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above) for fd in fds]
        sock = socket.socket(fileno=fcntl.fcntl(sock.detach(), fcntl.F_DUPFD_CLOEXEC, above))
        os.closerange(3, above)
    cwd, stdin, stdout, stderr = fds[2:6]
    try:
        os.fchdir(cwd)
    except OSError as exc:
        raise SetupFailed("working directory", exc.errno or 0) from exc
    os.umask(int(words["umask"]))
    for fd, target in zip([stdin, stdout, stderr, *fds[6:]], [0, 1, 2, *targets], strict=True):
        os.dup2(fd, target)
    if words["tty"] == "1":
        take_terminal()
    return sock


def take_terminal() -> None:
    """Make the terminal on stdout the controlling one of this session, which has none yet (TIOCSCTTY, tty_ioctl(4))."""
    try:
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)
    except OSError as exc:
        raise SetupFailed("controlling terminal", exc.errno or 0) from exc


def set_limits(word: str) -> None:
    """Resource limits of the host as they are now. Only those that differ: raising a hard limit needs privilege."""
    for entry in filter(None, word.split(",")):
        which, soft, hard = map(int, entry.split(":"))
        try:
            if resource.getrlimit(which) != (soft, hard):
                resource.setrlimit(which, (soft, hard))
        except (OSError, ValueError) as exc:
            raise SetupFailed(f"resource limit {which}", getattr(exc, "errno", 0) or errno.EPERM) from exc


def become(word: str) -> None:
    """Give up root for the user of the request, for good: real, effective and saved ids, and every other group."""
    if not word:
        return
    user, group = map(int, word.split(":"))
    try:
        os.setgroups([group])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)
    except OSError as exc:
        raise SetupFailed(f"becoming user {user}", exc.errno or 0) from exc


def execute(argv: list[bytes], environment: dict[bytes, bytes]) -> tuple[int, bool]:
    """Exec, searching PATH when the name has no slash. Returns only on failure: errno, and whether an interpreter is missing."""
    name = argv[0]
    if b"/" in name:
        candidates = [name]
    else:
        folders = environment.get(b"PATH", DEFAULT_PATH).split(b":")
        candidates = [(folder or b".") + b"/" + name for folder in folders] if name else []
    best = errno.ENOENT
    interpreter = False
    for path in candidates:
        try:
            os.execve(path, argv, environment)  # noqa: S606 - a shell is what the plan says, or none
        except OSError as exc:
            number = exc.errno or errno.EIO
            if number == errno.ENOENT and os.access(path, os.F_OK):  # a script whose #! line names nothing
                interpreter = True
            elif number == errno.EACCES:  # like execvp(3): look on, but say so if nothing better comes
                best = number
            elif number not in (errno.ENOENT, errno.ENOTDIR):
                return number, False
    return best, interpreter
