"""What goes wrong with files, in words for the model: which path, what is wrong, what to do. No state."""

import errno

from toolrunner.errors import ToolError

_ADVICE = {
    errno.ENOENT: ("not_found", "is not there; look with list_dir or search"),
    errno.ENOTDIR: ("wrong_kind", "is not a folder, so nothing is inside it"),
    errno.EISDIR: ("wrong_kind", "is a folder, not a file"),
    errno.EACCES: ("forbidden", "may not be used by this program's user"),
    errno.EPERM: ("forbidden", "may not be changed"),
    errno.EROFS: ("forbidden", "is on a file system that is mounted read-only"),
    errno.ELOOP: ("wrong_kind", "is a symlink that leads in a circle, or was replaced meanwhile"),
    errno.ENAMETOOLONG: ("bad_path", "has a name that is too long; shorten it"),
    errno.ENOSPC: ("full", "cannot be written: the disk is full; free some space first"),
    errno.EDQUOT: ("full", "cannot be written: the disk quota is used up; free some space first"),
    errno.EFBIG: ("full", "cannot be written: it is larger than a file may be here"),
}


def refused(shown: str, error: OSError) -> ToolError:
    """What the system said about a path."""
    kind, words = _ADVICE.get(error.errno or 0, ("io", f"cannot be used: {error.strerror or type(error).__name__}"))
    return ToolError(f"{shown} {words}", kind=kind)
