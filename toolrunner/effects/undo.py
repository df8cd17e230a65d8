"""How the change of one effect is taken back, as its body declares it with `ctx.effect(..., undo=...)`.

State: which effects of a call can still be undone, and in which order they were applied; written by the call's ledger alone.
Nothing here runs an undo: when, in what order and within which bounds is the pipeline's business.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

from toolrunner.errors import ConfigError
from toolrunner.facts import EffectRecord, EffectStage

_orders = itertools.count()
"""The order of acts over the ledgers of all calls: a parent's acts and its children's are undone in the reverse of one order."""


@final
class Undoing:
    """What an undo is given: the effect that it is to take back. State: whether it said that it did not."""

    __slots__ = ("_not_applied", "effect_id", "kind", "receipt", "target")

    def __init__(self, effect: EffectRecord) -> None:
        self.effect_id = effect.effect_id
        self.kind = effect.kind
        self.target = effect.target
        self.receipt = effect.receipt
        """What the act left as its proof; None if it left none, or never got that far."""
        self._not_applied = False

    def not_applied(self) -> None:
        """The undo is known to have done nothing, however it is left: the change stands as it was."""
        self._not_applied = True

    @property
    def was_not_applied(self) -> bool:
        """Whether it said so."""
        return self._not_applied


UndoFunction = Callable[[Undoing], object]
"""A coroutine function runs in a task, any other in a thread; one that returns an awaitable has that awaited."""


@final
@dataclass(frozen=True, slots=True)
class Undo:
    """An undo and what it may be trusted with; a bare function is `Undo(function)`.

    `idempotent`: running it again does no harm, so it is tried again when it fails. `when_unknown`: it copes with an act of which
    nobody knows whether it happened; without it only an effect that is known to be applied is undone. It returns when the change
    is known to be gone and raises when it is not; `e.not_applied()` says that it did nothing.

    Raises:
        ConfigError: `fn` cannot be called.
    """

    fn: UndoFunction
    idempotent: bool = False
    when_unknown: bool = False

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise ConfigError("an undo", self.fn, "a function that takes the effect")

    def covers(self, stage: EffectStage) -> bool:
        """Whether an effect in this stage may be undone by it."""
        return stage is EffectStage.APPLIED or (self.when_unknown and stage in (EffectStage.PLANNED, EffectStage.UNKNOWN))


def as_undo(undo: Undo | UndoFunction | None) -> Undo | None:
    """The undo that an author means. Raises `ConfigError`."""
    return undo if undo is None or isinstance(undo, Undo) else Undo(undo)


@final
@dataclass(frozen=True, slots=True)
class OpenUndo:
    """One effect that can be undone."""

    effect: EffectRecord
    undo: Undo


@final
class Undos:
    """The undos of one call that were not tried yet, those of its children among them."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, Undo]] = {}

    def keep(self, effect_id: str, undo: Undo) -> None:
        """An effect was planned that can be undone."""
        self._known[effect_id] = (next(_orders), undo)

    def acted(self, effect_id: str) -> None:
        """Its act is over, now: what counts is the order of the acts and not of the plans."""
        if effect_id in self._known:
            self._known[effect_id] = (next(_orders), self._known[effect_id][1])

    def drop(self, effect_id: str) -> None:
        """It is tried now, and once is all: a second try would be on top of what the first one left."""
        self._known.pop(effect_id, None)

    def adopt(self, other: "Undos") -> None:
        """Take those of a child call that is over; they are its parent's from now on."""
        self._known |= other.take()

    def take(self) -> dict[str, tuple[int, Undo]]:
        """All of them, which are somebody else's now."""
        taken, self._known = self._known, {}
        return taken

    def latest_first(self) -> Iterator[tuple[str, Undo]]:
        """All of them, the latest act first."""
        by_order = sorted(self._known.items(), key=lambda item: item[1][0], reverse=True)
        return ((effect_id, undo) for effect_id, (_, undo) in by_order)

    def __len__(self) -> int:
        return len(self._known)
