"""Who else was writing while a call was watched: the difference between "this call changed it" and "it changed".

State: the watches and other writers that are active, each with the mark whether another one overlapped it; changed by their begin
and end, on the loop, without a wait. It knows the calls and jobs of one runner only, nothing of other programs on the machine.
"""

import os
from collections.abc import Iterable
from typing import Self, final

from toolrunner.facts import Attribution
from toolrunner.observe.scan import real_roots

Roots = tuple[str, ...] | None
"""Real paths of the folders in which somebody may write; None = anywhere."""


class _Active:
    """Somebody who may be writing."""

    __slots__ = ("looks", "shared", "writes")

    def __init__(self, looks: tuple[str, ...], writes: Roots) -> None:
        self.looks = looks
        self.writes = writes
        self.shared = False


@final
class Watch:
    """One watched call, from before its first scan until after its second."""

    __slots__ = ("_active", "_watches")

    def __init__(self, watches: "Watches", active: _Active) -> None:
        self._watches = watches
        self._active = active

    @property
    def roots(self) -> tuple[str, ...]:
        """The watched folders, as real paths."""
        return self._active.looks

    def finish(self) -> Attribution:
        """End it, and say whose the changes are. Called again it says the same."""
        self._watches._end(self._active)  # noqa: SLF001  the two are one
        return Attribution.SHARED if self._active.shared else Attribution.EXCLUSIVE


@final
class Writer:
    """Somebody who may write and is not watched; `close` it, or use it with `with`."""

    __slots__ = ("_active", "_watches")

    def __init__(self, watches: "Watches", active: _Active) -> None:
        self._watches = watches
        self._active = active

    def close(self) -> None:
        """It writes no more. Called again it does nothing."""
        self._watches._end(self._active)  # noqa: SLF001  the two are one

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@final
class Watches:
    """One per runner."""

    def __init__(self) -> None:
        self._active: dict[_Active, None] = {}
        self._looking: dict[_Active, None] = {}
        """Those of `_active` that look: only they can share, and nearly everybody merely writes."""

    def begin(self, roots: Iterable[str | os.PathLike[str]], *, unconfined: bool = False) -> Watch:
        """A call begins whose changes in `roots` are wanted. Begin before the first scan, finish after the second.

        `unconfined`: it may write elsewhere too, as any command without a sandbox can, so others must not take its changes for
        their own. That does not make its own changes shared. Raises ConfigError as `snapshot` does.
        """
        # Two names of one folder overlap. Bind mounts and hard links cannot be seen this way.
        looks = real_roots(roots)
        active = _Active(looks, None if unconfined else looks)
        self._begin(active)
        return Watch(self, active)

    def writer_active(self, roots: Iterable[str | os.PathLike[str]] | None = None) -> Writer:
        """Somebody begins to run who is not watched and may write in `roots` (None: anywhere): a call, a kept job, an undo."""
        active = _Active((), None if roots is None else real_roots(roots))
        self._begin(active)
        return Writer(self, active)

    def _begin(self, new: _Active) -> None:
        # Whoever is active together even for a moment shares for good: a scan cannot tell when a change was made.
        for other in self._looking:
            other.shared = other.shared or _overlap(other.looks, new.writes)
        self._active[new] = None
        if new.looks:
            new.shared = any(_overlap(new.looks, other.writes) for other in self._active if other is not new)
            self._looking[new] = None

    def _end(self, active: _Active) -> None:
        self._active.pop(active, None)
        self._looking.pop(active, None)


def _overlap(looks: tuple[str, ...], writes: Roots) -> bool:
    if writes is None:
        return bool(looks)
    return any(_within(a, b) or _within(b, a) for a in looks for b in writes)


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)
