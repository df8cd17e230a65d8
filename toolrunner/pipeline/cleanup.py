"""`ctx.cleanup()`: a block that no cancel cuts in half. No state of its own; the ledger counts who holds cancels back."""

import contextlib
from collections.abc import Iterator

import anyio

from toolrunner.effects import EffectLedger


@contextlib.contextmanager
def cleanup(ledger: EffectLedger) -> Iterator[None]:
    """Hold cancels back for the block, as a shielded effect does: scopes by a shield, the native cancel by not sending it."""
    ledger.shield(+1)
    try:
        with anyio.CancelScope(shield=True):
            yield
    finally:
        ledger.shield(-1)
