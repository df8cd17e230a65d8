"""LeaseDesk: gives a call everything it needs to run at once: resource locks, a thread or process place, its tool's own limit.

All or nothing, in order of asking: a call that waits holds nothing, so two calls cannot wait for each other. State: the leases
out and the queue, changed by `ask` and `Lease.release` only, synchronously. Who waits here is told to the runner's `WaitGraph`,
since a holder may wait for something else.
"""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import takewhile
from typing import final

import anyio

from toolrunner.abort import AbortSignal
from toolrunner.errors import ToolrunnerError
from toolrunner.pipeline.circles import Caller, HeldUp, WaitGraph, line_of
from toolrunner.tools import Resource


@dataclass(frozen=True, slots=True)
class Place:
    """One place in a counted pool: "threads", "processes" or "tool:NAME"; `limit` is how many there are."""

    pool: str
    limit: int


@dataclass(frozen=True, slots=True)
class Needs:
    """What one call must hold while its body runs."""

    resources: tuple[Resource, ...] = ()
    places: tuple[Place, ...] = ()


@final
class Lease:
    """What one call holds. Given back once, by whoever sees its body's end."""

    __slots__ = ("_desk", "needs", "parent", "released")

    def __init__(self, desk: "LeaseDesk", needs: Needs, parent: "Lease | None") -> None:
        self._desk = desk
        self.needs = needs
        self.parent = parent
        self.released = False

    def release(self) -> None:
        """Give everything back; calling it again does nothing."""
        if not self.released:
            self.released = True
            self._desk.give_back(self)

    def held_above(self) -> "set[Lease]":
        """The leases of the calls in whose bodies this one was made."""
        above: set[Lease] = set()
        lease = self.parent
        while lease is not None:
            above.add(lease)
            lease = lease.parent
        return above


class WouldDeadlock(ToolrunnerError):
    """A call would wait for a call that waits for this one. Becomes a result."""

    def __init__(self) -> None:
        super().__init__("it would wait for a call that itself waits for this one; let calls take resources in one order")


@final
@dataclass(eq=False, slots=True)
class _Waiting:
    """A `Wait` for a lease."""

    desk: "LeaseDesk"
    lease: Lease
    line: frozenset[str]
    granted: anyio.Event = field(default_factory=anyio.Event)

    def above(self) -> AbstractSet[object]:
        return self.lease.held_above()

    def can_go_on(self, held: HeldUp) -> bool:
        return self.desk.could_grant(self, held)


@final
class LeaseDesk:
    """Hands out leases. One per runner."""

    __slots__ = ("_graph", "_out", "_queue", "_used")

    def __init__(self, graph: WaitGraph | None = None) -> None:
        self._graph = graph if graph is not None else WaitGraph()
        self._out: dict[Lease, None] = {}
        self._queue: list[_Waiting] = []
        self._used: Counter[str] = Counter()

    async def ask(
        self, needs: Needs, signal: AbortSignal, parent: Lease | None = None, caller: Caller | None = None
    ) -> Lease | None:
        """Wait for everything in `needs`; None if `signal` is aborted first (nothing is held then).

        A child needs no place that a call above it holds, and is not kept out by the locks of those: else a parent that waits
        for its child would wait for itself. Raises `WouldDeadlock` for a call whose wait would close a circle; `caller` is the
        one that asks, so that who waits for its key, or for a call after it in its batch, is seen to wait for it.
        """
        lease = Lease(self, self._without_what_is_held_above(needs, parent), parent)
        if not self._queue and self._fits(lease):  # nobody to overtake, nothing to wait for: most calls
            self._take(lease)
            return lease
        waiting = _Waiting(self, lease, line_of(caller))
        self._queue.append(waiting)
        self._grant()
        if lease in self._out:
            return lease
        self._graph.enter(waiting, for_key=False)
        # Looked at only where somebody may wait for it: the look takes longer the more wait.
        if (parent is not None or self._graph.has_key_waits) and self._graph.is_stuck(waiting):
            self._leave(waiting)
            raise WouldDeadlock
        unsubscribe = signal.on_abort(waiting.granted.set)
        try:
            await waiting.granted.wait()
        except BaseException:
            if lease in self._out:  # granted and cancelled in one tick: nobody will ever have it
                lease.release()
            raise
        finally:
            unsubscribe()
            if waiting in self._queue:
                self._leave(waiting)
                self._grant()
        return lease if lease in self._out else None

    def _leave(self, waiting: _Waiting) -> None:
        self._queue.remove(waiting)
        self._graph.leave(waiting)

    @property
    def held(self) -> int:
        """How many leases are out."""
        return len(self._out)

    @staticmethod
    def _without_what_is_held_above(needs: Needs, parent: Lease | None) -> Needs:
        held: set[str] = set()
        above = parent
        while above is not None:
            held.update(place.pool for place in above.needs.places)
            above = above.parent
        return Needs(needs.resources, tuple(place for place in needs.places if place.pool not in held)) if held else needs

    def give_back(self, lease: Lease) -> None:
        """Called by `Lease.release`, once per lease."""
        del self._out[lease]
        for place in lease.needs.places:
            self._used[place.pool] -= 1
        if self._queue:
            self._grant()

    def _grant(self) -> None:
        """Grant, in order, all that fits. A waiting call keeps later ones from overtaking it on what it waits for."""
        blocked_pools: set[str] = set()
        blocked: list[Lease] = []
        for waiting in tuple(self._queue):
            lease = waiting.lease
            full = [p.pool for p in lease.needs.places if self._used[p.pool] >= p.limit or p.pool in blocked_pools]
            above = lease.held_above()
            if full or self._conflicts(lease, above, (*self._out, *blocked)):
                blocked_pools.update(full)
                blocked.append(lease)
                continue
            self._leave(waiting)
            self._take(lease)
            waiting.granted.set()

    def could_grant(self, waiting: _Waiting, held: HeldUp) -> bool:
        """For the graph: whether a lease would be granted if all went on but what is held up.

        A holder is held up by a child that is; of a full pool it is enough that one holder is not.
        """
        lease, above = waiting.lease, waiting.lease.held_above()
        held_up = [one for one in self._out if one in held.leases]
        if self._conflicts(lease, above, held_up):
            return False
        ahead = takewhile(lambda one: one is not waiting, self._queue)
        if self._conflicts(lease, above, [one.lease for one in ahead if one in held.waits]):
            return False
        return all(
            self._used[place.pool] < place.limit
            or any(one not in held.leases for one in self._out if any(place.pool == other.pool for other in one.needs.places))
            for place in lease.needs.places
        )

    def _take(self, lease: Lease) -> None:
        self._out[lease] = None
        for place in lease.needs.places:
            self._used[place.pool] += 1

    def _fits(self, lease: Lease) -> bool:
        """Whether it could be taken now if nobody waited."""
        if any(self._used[place.pool] >= place.limit for place in lease.needs.places):
            return False
        return not lease.needs.resources or not self._conflicts(lease, lease.held_above(), self._out)

    @staticmethod
    def _conflicts(lease: Lease, above: set[Lease], others: Iterable[Lease]) -> bool:
        """Whether one of `others` keeps `lease` out by a lock.

        A lock that a call above holds is the child's too: nobody who waits for it may keep the child out, since the call above
        gives it back only after its child has ended. (An ancestor that only reads does not cover a child that writes.)
        """
        if not lease.needs.resources:
            return False
        own = {held.key: held.mode for one in above for held in one.needs.resources}
        return any(
            mine.key == theirs.key and "write" in (mine.mode, theirs.mode)
            for other in others
            if other not in above
            for theirs in other.needs.resources
            for mine in lease.needs.resources
            if own.get(mine.key) not in ("write", mine.mode)
        )
