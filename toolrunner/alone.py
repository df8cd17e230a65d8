"""Refuses to be imported beside another project's files. No state; importing it is the check, one look at one folder.

The index has another distribution called toolrunner, which installs into the same folder as ours (agent-toolrunner). With both
installed some files are theirs and some ours; whatever happened then would be told wrongly. The file names beside the package
say so at the cost of one directory listing; `importlib.metadata` would cost more than all else here.
"""

from collections.abc import Iterable
from pathlib import Path

OTHER = "toolrunner"


def check_alone(folder: Path) -> None:
    """Raise ImportError if the other distribution is installed in `folder`, the one that holds our package."""
    try:
        other = other_distribution(one.name for one in folder.iterdir())
    except OSError:  # imported from an archive, or a folder that may be entered and not read
        return
    if other is not None:
        raise ImportError(
            f"{other} in {folder} belongs to another project, whose files and ours are mixed there: both are imported as "
            f"'{OTHER}'. Uninstall both, then install the one you want: pip uninstall {OTHER} agent-toolrunner"
        )


def other_distribution(names: Iterable[str]) -> str | None:
    """The name of its metadata among `names`, or None. (Ours begins with agent_toolrunner.)"""
    return next((name for name in names if _is_its_metadata(name.lower())), None)


def _is_its_metadata(name: str) -> bool:
    stem, dot, kind = name.rpartition(".")
    return dot != "" and kind in ("dist-info", "egg-info") and (stem == OTHER or stem.startswith(f"{OTHER}-"))


check_alone(Path(__file__).parents[1])
