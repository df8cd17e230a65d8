"""What becomes of a transaction when its call is over. State: the layer on disk, which it takes away or leaves."""

import os
from dataclasses import dataclass
from typing import final

from toolrunner.facts import Change
from toolrunner.results import Transaction
from toolrunner.sandbox.overlay.changes import LayerChange, changes
from toolrunner.sandbox.overlay.commit import commit
from toolrunner.sandbox.overlay.layer import Layer, Stage
from toolrunner.sandbox.profile import Ending, TransactionRules


@final
@dataclass(frozen=True, slots=True)
class Settled:
    """What was found and done. `conflicts` were left as somebody else had made them; `problem` is why a commit is not whole."""

    transaction: Transaction
    changes: tuple[Change, ...] = ()
    conflicts: tuple[str, ...] = ()
    problem: str | None = None


def settle(layer: Layer, ending: Ending) -> Settled:
    """Do it. Never raises OSError: what cannot be done is told, and the layer stays for another try."""
    try:
        found = changes(layer)
    except OSError as error:
        return Settled(Transaction.KEPT, problem=f"the changes in {layer.folder} could not be read: {error}")
    told = tuple(Change(os.path.join(layer.lower, each.path), each.kind) for each in found)
    try:
        match ending:
            case Ending.KEEP if found:
                layer.at(Stage.KEPT)
                return Settled(Transaction.KEPT, told)
            case Ending.COMMIT if found:
                return _committed(layer, found, told)
            case _:
                layer.remove()
                return Settled(Transaction.COMMITTED if ending is Ending.COMMIT else Transaction.DISCARDED, told)
    except OSError as error:
        return Settled(Transaction.KEPT, told, problem=f"{layer.folder}: {error}")


def _committed(layer: Layer, found: tuple[LayerChange, ...], told: tuple[Change, ...]) -> Settled:
    layer = layer.at(Stage.COMMITTING)
    try:
        conflicts = commit(layer, found)
    except OSError as error:
        return Settled(Transaction.HALF_COMMITTED, told, problem=str(error))
    if conflicts:  # what was not carried over stays where it can be looked at
        layer.at(Stage.KEPT)
        return Settled(Transaction.HALF_COMMITTED, told, conflicts)
    layer.remove()
    return Settled(Transaction.COMMITTED, told)


@final
@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """The one of a call that is prepared or runs. `is_closed`: the call had no network, so its files are all it could change."""

    layer: Layer
    rules: TransactionRules
    is_closed: bool

    def settle(self, *, succeeded: bool) -> Settled:
        """The call is over."""
        return settle(self.layer, self.rules.on_success if succeeded else self.rules.on_abort)

    def drop(self) -> None:
        """The call never ran."""
        self.layer.remove()
