"""The transaction of one command: settled when it is over, dropped when it never ran. State: whether that was done."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import final

from toolrunner.effects import Scan
from toolrunner.pipeline.ends import BodyEnd
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.pipeline.verdict import verdict
from toolrunner.pipeline.watching import in_thread
from toolrunner.results import Outcome, Transaction
from toolrunner.sandbox.overlay import OpenTransaction, Settled

_logger = logging.getLogger("toolrunner")


@final
class Transacted:
    """`transaction` is None for a command without one; then nothing here does anything."""

    def __init__(self, state: ActiveCall, services: Services, transaction: OpenTransaction | None) -> None:
        self._state, self._services, self._open = state, services, transaction

    @contextmanager
    def dropped_unless_prepared(self) -> Iterator[None]:
        """Around the preparation of its process."""
        try:
            yield
        except BaseException:
            self.drop()
            raise

    def drop(self) -> None:
        """Nothing ran, so there is nothing in it."""
        transaction, self._open = self._open, None
        if transaction is not None:
            try:
                transaction.drop()
            except OSError:  # an empty folder is left; `toolrunner discard` takes it away
                _logger.exception("the layer of call %s could not be removed", self._state.run_id)

    async def settle(self, end: BodyEnd) -> BodyEnd:
        """Carry the changes over, keep or discard them, while the call still holds its locks.

        By what is known of the outcome now: an abort that comes later finds it done.
        """
        transaction, self._open = self._open, None
        if transaction is None or end.sandbox is None:
            return end
        reason = self._state.body_signal.immediate().reason
        succeeded = verdict(end, reason).outcome is Outcome.SUCCEEDED
        settled = await in_thread(self._services, lambda: transaction.settle(succeeded=succeeded))
        self._state.scan = _scan(settled, transaction)
        problem = (f"transaction: {settled.problem}",) if settled.problem is not None else ()
        sandbox = replace(end.sandbox, transaction=settled.transaction, conflicts=settled.conflicts)
        return replace(end, sandbox=sandbox, missing=(*end.missing, *problem))


def _scan(settled: Settled, transaction: OpenTransaction) -> Scan:
    where = (transaction.layer.lower,)
    is_there = settled.transaction is Transaction.COMMITTED
    is_gone = settled.transaction is Transaction.DISCARDED
    return Scan(
        settled.changes, where, complete=settled.problem is None, applied=is_there, is_all=is_gone and transaction.is_closed
    )
