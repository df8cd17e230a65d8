"""Which calls of a journal are in doubt: their effects are unknown, and their tool could tell. Pure.

A call counts from its `call/dispatched` on (it may have started, whatever became of its host) until somebody's look told what
became of it. Tools that do not declare `reconcile` hold nothing.
"""

from collections.abc import Iterable

from toolrunner.facts import EffectState
from toolrunner.journal.codec import RawRecord
from toolrunner.records import CallDispatched, CallEnded, CallReconciled, CallSettled, Record


def in_doubt(records: Iterable[Record | RawRecord]) -> frozenset[str]:
    """The run ids. `records` in order; those of other kinds do no harm, and one that cannot be read ends no doubt."""
    doubts: set[str] = set()
    declared: set[str] = set()
    for record in records:
        if isinstance(record, CallDispatched) and record.reconciles:
            declared.add(record.run_id)
            doubts.add(record.run_id)
        elif isinstance(record, CallEnded | CallSettled) and record.result is not None and record.run_id in declared:
            _note(doubts, record.run_id, unknown=record.result.effects.state is EffectState.UNKNOWN)
        elif isinstance(record, CallReconciled) and record.run_id in declared:
            _note(doubts, record.run_id, unknown=record.as_ == "unknown")
    return frozenset(doubts)


def _note(doubts: set[str], run_id: str, *, unknown: bool) -> None:
    if unknown:
        doubts.add(run_id)
    else:
        doubts.discard(run_id)
