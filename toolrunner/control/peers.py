"""Who may ask: this user, from a process that is none of ours. Reads the kernel's word about a connection; no state.

A tool that runs here runs as the same user. It must not stop its siblings, or read what they are, so a peer that descends from
this program (from its warden and keepers, or from itself) is refused, and so is one about which that cannot be said.
"""

import os
import socket
import struct

import psutil

from toolrunner.process.identity import starttime_of

LOOKS = 1_000
"""Looks at ancestors. Nobody has that many: it is a circle made of recycled numbers, or a parent that cannot be seen."""

_UCRED = struct.Struct("iII")
"""struct ucred of unix(7): pid, uid, gid."""


def why_refused(connection: socket.socket) -> str | None:
    """Why this peer gets no answer, or None if it may ask."""
    if not hasattr(socket, "SO_PEERCRED"):
        return "this system does not say who asks"
    pid, uid, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    if uid != os.geteuid():
        return "you are another user"
    if pid <= 0:
        return "you are in a pid namespace that cannot be seen from here"
    began = starttime_of(pid)
    line = ancestry(pid)
    if line is None or not began or starttime_of(pid) != began:
        # Whoever connected is gone and left the connection to somebody else, which is what a tool in disguise would do.
        return "the process that connected is gone, or cannot be seen whole from here"
    if os.getpid() in line:
        return "you run inside this program, and a tool does not stop its siblings"
    return None


def ancestry(pid: int) -> list[int] | None:
    """`pid`, its parent, and so on; None if that cannot be said for sure.

    A process whose parent ends while we look has been handed on to another one: asked again until two looks agree. The parent of
    one that we may see may be out of sight for good (`hidepid` of proc(5)).
    """
    line = [pid]
    for _ in range(LOOKS):
        try:
            parent = psutil.Process(line[-1]).ppid()
            if parent in (0, None):  # pid 1, or a process whose parent is outside of this namespace
                return line
            if not starttime_of(parent) or psutil.Process(line[-1]).ppid() != parent:
                continue
        except psutil.Error:
            return None
        line.append(parent)
    return None
