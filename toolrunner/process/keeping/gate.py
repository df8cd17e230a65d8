"""The start gate: a child forked ahead of need, which sets itself up and then blocks until the one byte that lets it exec.

EOF instead of that byte, whoever died, makes it exit without exec: the proof that nothing ran. The same socket carries the
exec's answer: it is close-on-exec, so EOF means that the command runs, and a message says why it does not.
Child's messages: `set` | `fail ERRNO STEP` (setting up), then `x ERRNO FLAG` (exec). Keeper's: the request, then `g`.
"""

import errno
import fcntl
import os
import resource
import signal
import socket
import termios

from toolrunner.process.keeping.messages import decode, unpack
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


class Gate:
    """The keeper's side of a waiting child. `pid` is also the number of its session and group."""

    def __init__(self, pid: int, sock: socket.socket) -> None:
        self.pid = pid
        self.sock = sock
        facts = stat(pid)
        self.starttime = facts.starttime if facts else 0

    def hand_over(self, request: bytes, fds: list[int]) -> bool:
        """Pass the request on to the child; its answer comes on `sock`. False when the child is dead (it is reaped then)."""
        try:
            socket.send_fds(self.sock, [request], fds)
        except OSError:
            os.waitpid(self.pid, 0)
            return False
        for fd in fds:
            os.close(fd)
        return True

    def release(self) -> None:
        """Let the child exec."""
        try:
            self.sock.send(b"g")
        except OSError:  # killed at the gate: its status tells
            pass


def fork_gate() -> Gate:
    """Fork a child to the gate. Raises OSError (EAGAIN: process limit; EMFILE)."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        pid = os.fork()
    except OSError:
        ours.close()
        theirs.close()
        raise
    if pid == 0:
        try:
            wait_at_gate(theirs.detach())
        finally:  # whatever happened, this is no second keeper
            os._exit(NOT_RUN)
    theirs.close()
    return Gate(pid, ours)


def wait_at_gate(fd: int) -> None:
    """The child's whole life before exec."""
    # Copies of the keeper's sockets here would hide its death from the host.
    os.closerange(3, fd)
    os.closerange(fd + 1, 65536)
    os.setsid()
    plain_signals()
    sock = socket.socket(fileno=fd)
    request, fds = receive(sock)
    if not request:
        return
    try:
        words = decode(request)[1]
        sock = set_up(sock, words, fds)
        argv, environment = unpack(read_all(fds[0]), int(words["args"]))
        set_limits(words["limits"])
    except SetupFailed as failure:
        sock.send(f"fail {failure.number} {failure.step}".encode())
        return
    sock.send(b"set")
    if sock.recv(1) == b"g":
        number, interpreter = execute(argv, environment)
        sock.send(f"x {number} {interpreter:d}".encode())


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
    cwd, stdin, stdout, stderr = fds[1:5]
    try:
        os.fchdir(cwd)
    except OSError as exc:
        raise SetupFailed("working directory", exc.errno or 0) from exc
    os.umask(int(words["umask"]))
    for fd, target in zip([stdin, stdout, stderr, *fds[5:]], [0, 1, 2, *targets], strict=True):
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
