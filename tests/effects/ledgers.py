"""A ledger over a journal that is slow, or that fails, as the test says."""

from collections.abc import Awaitable
from typing import Any

import anyio

from toolrunner.effects import EffectLedger
from toolrunner.facts import EffectStage

PLANNED, APPLIED, UNKNOWN, NOT_APPLIED = EffectStage.PLANNED, EffectStage.APPLIED, EffectStage.UNKNOWN, EffectStage.NOT_APPLIED


class Journal:
    """Takes records; with `gate` a plan becomes durable only when it is set. `fail` makes the append of a type raise."""

    def __init__(self, gate: anyio.Event | None = None, fail: str = "") -> None:
        self.types: list[str] = []
        self.stages: list[EffectStage] = []
        self._gate = gate
        self._fail = fail

    def append(self, record: Any) -> Awaitable[None] | None:
        if record.type == self._fail:
            raise OSError("disk full")
        self.types.append(record.type)
        self.stages.append(record.effect.stage)
        return self._gate.wait() if self._gate is not None and record.type == "effect/planned" else None


def ledger_of(journal: Journal, **options: Any) -> EffectLedger:
    return EffectLedger("run1", journal.append, **options)
