"""WaitGraph: who waits for whom, over resource locks, places and idempotency keys together, so that no circle is ever waited in.

A call can hold a lock and want a key while another holds the key and wants the lock; each table alone sees no circle. State: the
waits of one runner, entered and left by `LeaseDesk` and `KeyTable` in the same step in which the wait begins and ends.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol, final


class Caller(Protocol):
    """A call that may have to wait."""

    @property
    def run_id(self) -> str: ...
    def ancestors(self) -> "Sequence[Caller]": ...


def line_of(caller: Caller | None) -> frozenset[str]:
    """The run ids of a call and of those in whose bodies it was made: none of them goes on before it does."""
    return frozenset(one.run_id for one in (caller, *caller.ancestors())) if caller is not None else frozenset()


class Wait(Protocol):
    """One call's wait. Hashed by identity."""

    @property
    def line(self) -> frozenset[str]:
        """Who does not go on before this wait is over; see `line_of`."""
        ...

    def above(self) -> AbstractSet[object]:
        """The leases of the calls above, which are given back only after it."""
        ...

    def can_go_on(self, held: "HeldUp") -> bool:
        """Whether it would end if everything went on but what is held up."""
        ...


@final
@dataclass(frozen=True, slots=True)
class HeldUp:
    """What does not go on as long as these waits do not end."""

    waits: frozenset[Wait]
    calls: frozenset[str]
    leases: frozenset[object]


@final
class WaitGraph:
    """One per runner."""

    __slots__ = ("_for_keys", "_waits")

    def __init__(self) -> None:
        self._waits: dict[Wait, bool] = {}
        """Each wait, and whether it is for a key."""
        self._for_keys = 0

    def enter(self, wait: Wait, *, for_key: bool) -> None:
        """It waits from now on. `leave` must follow."""
        self._waits[wait] = for_key
        self._for_keys += for_key

    def leave(self, wait: Wait) -> None:
        """It waits no more. Called again it does nothing."""
        self._for_keys -= self._waits.pop(wait, False)

    @property
    def has_key_waits(self) -> bool:
        """Whether anybody waits for a key. If not, nobody waits for a call that belongs to no other: it closes no circle."""
        return self._for_keys > 0

    def is_stuck(self, wait: Wait) -> bool:
        """Whether a wait that was just entered can never end.

        All waits are taken as stuck at first; one is not if it would end although the rest is. What is left waits for itself.
        Whoever closes a circle is refused, so there was none before: it is this wait that closes it.
        """
        stuck = frozenset(self._waits)
        while wait in stuck:
            held = HeldUp(
                stuck,
                frozenset().union(*(one.line for one in stuck)),
                frozenset().union(*(one.above() for one in stuck)),
            )
            freed = [one for one in stuck if one.can_go_on(held)]
            if not freed:
                return True
            stuck = stuck.difference(freed)
        return False
