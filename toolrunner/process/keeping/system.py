"""The kernel as warden and keepers see it: prctl, /proc, pidfds. Stateless but for `Kernel`, which knows what works here."""

import os
import signal
import socket
import struct

try:
    import ctypes

    _libc: ctypes.CDLL | None = ctypes.CDLL(None, use_errno=True)
except (ImportError, OSError, TypeError):  # built without libffi, or Windows: no subreaper, so the self-test says unfit
    _libc = None

# prctl(2) and its constants; Python wraps none of them.
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 1, 4, 15, 36
MSG_CMSG_CLOEXEC = 0x40000000
"""recvmsg(2): received descriptors are close-on-exec from birth. socket.recv_fds leaves them inheritable: a tool could inherit
the control socket and forge its own exit."""

ONE_THREAD = 3
"""Links of /proc/PID/task when there is one folder in it (`.` and the folder above are the other two)."""

MAX_FDS = 250
"""SCM_MAX_FD is 253 (unix(7))."""

# By name, because the host imports this module on Windows too, where there are no such names.
CATCHABLE = signal.valid_signals() - {getattr(signal, name, None) for name in ("SIGKILL", "SIGSTOP")}


WHOLE = 2048
"""Bytes. A read of /proc that gives fewer gave all there was: the kernel goes on until half a page is full (seq_file)."""


def prctl(option: int, value: int | bytes) -> bool:
    """One prctl call. False when it failed or cannot be made."""
    if _libc is None:
        return False
    argument = ctypes.c_char_p(value) if isinstance(value, bytes) else ctypes.c_ulong(value)
    zero = ctypes.c_ulong(0)
    return bool(_libc.prctl(option, argument, zero, zero, zero) == 0)


def read_file(path: str) -> bytes:
    """All of a /proc file, raw. Raises OSError; ESRCH and ENOENT both mean that the process is gone."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        part = os.read(fd, 65536)
        if len(part) < WHOLE:
            return part
        parts = [part]
        while part := os.read(fd, 65536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)


class Stat:
    """The fields of /proc/PID/stat (proc_pid_stat(5)) that identify a process. `state` is one letter.

    `foreground` is the foreground group of its controlling terminal (tpgid), -1 without one.
    """

    __slots__ = ("comm", "foreground", "pgrp", "pid", "ppid", "session", "starttime", "state")

    def __init__(self, pid: int, raw: bytes) -> None:
        # comm may hold spaces and parentheses; the last ")" ends it.
        head, _, tail = raw.rpartition(b")")
        fields = tail.split()
        self.pid = pid
        self.comm = head.partition(b"(")[2]
        self.state = fields[0].decode()
        self.ppid, self.pgrp, self.session = int(fields[1]), int(fields[2]), int(fields[3])
        self.foreground = int(fields[5])
        self.starttime = int(fields[19])


def stat(pid: int) -> Stat | None:
    """Facts of a process, or None when there is none of that number."""
    try:
        return Stat(pid, read_file(f"/proc/{pid}/stat"))
    except (OSError, IndexError, ValueError):
        return None


def owner(pid: int) -> int:
    """The uid a process runs as, or -1. (A process that is not dumpable shows root here.)"""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1


def peek(pid: int) -> int | None:
    """The wait status of an own child that is dead, without reaping it; None while it lives. ECHILD raises.

    Unreaped, its number cannot be given away: its group may still be signalled.
    """
    result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if result is None:
        return None
    # As wait(2) encodes it: the signal in the low byte, the exit code above.
    return result.si_status << 8 if result.si_code == os.CLD_EXITED else result.si_status


def listed_children(pid: int) -> list[int]:
    """Children of every thread of `pid` (children are listed per thread: proc_pid_task_children, CONFIG_PROC_CHILDREN)."""
    try:
        if os.stat(f"/proc/{pid}/task").st_nlink == ONE_THREAD:
            return [*map(int, read_file(f"/proc/{pid}/task/{pid}/children").split())]
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found: list[int] = []
    for thread in threads:
        try:
            found += map(int, read_file(f"/proc/{pid}/task/{thread}/children").split())
        except OSError:
            continue
    return found


def scanned_children(pid: int) -> list[int]:
    """The same by looking at every process's parent: slower, for kernels without the `children` file."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            facts = stat(int(name))
            if facts is not None and facts.ppid == pid:
                found.append(facts.pid)
    return found


class Kernel:
    """What sweep and ladder ask of the kernel; tests give them another one. `lists` and `pidfds` are set by the self-test."""

    def __init__(self) -> None:
        self.lists = True
        self.pidfds = True

    def children(self, pid: int | None = None) -> list[int]:
        """The direct children of a process, of this one by default. Zombies are among them until they are reaped."""
        if pid is None:
            pid = os.getpid()
            if self.lists:  # this process has one thread: the short way
                return [*map(int, read_file(f"/proc/{pid}/task/{pid}/children").split())]
        return listed_children(pid) if self.lists else scanned_children(pid)

    def only_zombies(self) -> bool:
        """Whether every child is dead, without reaping any: the kernel's word, not that of a list read meanwhile.

        waitid(2) that asks for stopped children only passes zombies over, and is ECHILD when there is no other child.
        """
        try:
            os.waitid(os.P_ALL, 0, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return False

    def kill(self, pid: int, number: int) -> None:
        """Signal an own, unreaped child by its number, which cannot have been given away."""
        os.kill(pid, number)

    def kill_group(self, group: int, number: int) -> None:
        """Signal a group whose number an unreaped leader still holds. Init's and our own are refused: a bug, not a victim."""
        if group > 1 and group != os.getpgrp():
            os.killpg(group, number)

    def reap(self, pid: int = -1) -> tuple[int, int]:
        """One dead child (pid, wait status), or (0, 0) when none is dead yet. Raises ChildProcessError when none is left."""
        return os.waitpid(pid, os.WNOHANG)

    def signal_other(self, pid: int, starttime: int, number: int) -> bool:
        """Signal a process that is not our child, through a pidfd whose identity is checked after it was opened."""
        if not self.pidfds:
            return False
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return False
        try:
            facts = stat(pid)
            if facts is None or facts.starttime != starttime:
                return False
            signal.pidfd_send_signal(fd, number)
        except OSError:
            return False
        else:
            return True
        finally:
            os.close(fd)


def receive(sock: socket.socket, size: int = 4096) -> tuple[bytes, list[int]]:
    """One message with its descriptors. Raises OSError EMSGSIZE or EMFILE when either was cut (then none are left open)."""
    data, ancillary, flags, _ = sock.recvmsg(size, socket.CMSG_SPACE(MAX_FDS * 4), MSG_CMSG_CLOEXEC)
    fds: list[int] = []
    for level, kind, raw in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds += memoryview(raw[: len(raw) - len(raw) % 4]).cast("i")
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        cut = Cut(fds[1:2])
        for fd in fds[:1] + fds[2:]:
            os.close(fd)
        raise cut
    return data, fds


def send_fds(sock: socket.socket, message: bytes, fds: list[int]) -> None:
    """One message with descriptors."""
    sock.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))])


class Cut(OSError):
    """A message or its descriptors did not fit. `reply` is the answer socket if that one arrived."""

    def __init__(self, reply: list[int]) -> None:
        super().__init__("a request was cut by the kernel")
        self.reply = reply


def disguise(name: bytes) -> None:
    """Take our name and paths out of what `ps`, `pkill -f` and `killall` match: a tool that kills python means its own.

    The argument memory of this process is overwritten (arg_start, arg_end: fields 48 and 49 of its stat).
    """
    prctl(PR_SET_NAME, name[:15])
    if _libc is None:
        return
    fields = read_file("/proc/self/stat").rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    if 0 < start < end:
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, name[: end - start - 1], min(len(name), end - start - 1))
