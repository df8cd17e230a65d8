"""Who takes part: every way to stop processes that is installed here, and what to say of those that are not. No state."""

from benchmarks.baselines import bwrap, processkit_group
from benchmarks.baselines.killpg import Killpg
from benchmarks.baselines.psutil_tree import PsutilTree
from benchmarks.stopping import Stopper


def stoppers() -> list[Stopper]:
    """The baselines that work here."""
    found: list[Stopper] = [Killpg(), PsutilTree()]
    if processkit_group.INSTALLED:
        found.append(processkit_group.ProcesskitGroup())
    if bwrap.works():
        found.append(bwrap.Bwrap())
    return found


def absent() -> str:
    """Names those that do not, for a note; empty when all do."""
    missing = [
        name
        for name, there in (
            (processkit_group.ProcesskitGroup.name, processkit_group.INSTALLED),
            (bwrap.Bwrap.name, bwrap.works()),
        )
        if not there
    ]
    return f"not here: {', '.join(missing)}" if missing else ""
