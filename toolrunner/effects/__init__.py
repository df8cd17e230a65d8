"""What a call changed: the ledger that its body writes while it runs, and the fold that says what may be claimed afterwards.

Neither knows how a call is run, journalled or watched; what they need of that is handed in.
"""

from toolrunner.effects.fold import BodyFacts, Scan, fold
from toolrunner.effects.ledger import EffectLedger
from toolrunner.effects.scope import DURABLE_WAIT, Declared, EffectScope
from toolrunner.effects.undo import OpenUndo, Undo, UndoFunction, Undoing

__all__ = [
    "DURABLE_WAIT",
    "BodyFacts",
    "Declared",
    "EffectLedger",
    "EffectScope",
    "OpenUndo",
    "Scan",
    "Undo",
    "UndoFunction",
    "Undoing",
    "fold",
]
