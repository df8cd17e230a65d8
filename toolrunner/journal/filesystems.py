"""Whether a folder lies on a disk of this machine. No state.

WAL keeps its index in shared memory, which two machines do not have in common (https://www.sqlite.org/wal.html), and POSIX locks
are not to be trusted over most networks either.
"""

import os
import re
from pathlib import Path

from toolrunner.errors import JournalNotLocal

_MOUNTS = Path("/proc/self/mountinfo")

NOT_LOCAL = frozenset({
    "9p", "acfs", "afs", "autofs", "beegfs", "ceph", "cifs", "coda", "gfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs",
    "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "vboxsf",
    "fuse.ceph", "fuse.curlftpfs", "fuse.davfs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.gvfsd-fuse", "fuse.mountpoint-s3",
    "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "fuse.vmhgfs-fuse",
})  # fmt: skip
"""File systems whose other end is elsewhere, by the name that the kernel lists (proc_pid_mountinfo(5))."""


def require_local(path: Path, folder: Path) -> None:
    """Refuse a folder that is known to lie elsewhere. A system that tells nothing is believed: SQLite has the next word."""
    kind = filesystem(folder)
    if kind in NOT_LOCAL:
        raise JournalNotLocal(path, kind)


def filesystem(folder: Path) -> str:
    """The type of the file system that `folder` is on; empty if nobody says."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    return mounted_at(os.path.realpath(folder), mounts)


def mounted_at(path: str, mounts: str) -> str:
    """The type of the innermost mount that `path` is below; of several on one point the last, which covers the others."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 5 or not kinds[0]:  # noqa: PLR2004  the mount point is the fifth field
            continue
        point = _unescaped(fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:
            best, kind = len(point), kinds[0]
    return kind


def _unescaped(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
