"""StopTrace: one stop of one call, step by step. State: the steps, each written once, by whoever sees it first."""

from datetime import datetime
from typing import final

from toolrunner.facts import AbortReason, Stop, StopPhase
from toolrunner.facts.texts import well_formed
from toolrunner.records import now


@final
class StopTrace:
    """The steps of a stop as they happen. The first request is kept; written by whoever sees the step first."""

    __slots__ = ("delivered_at", "ended_at", "escalated", "phase", "reason", "requested_at", "signals")

    def __init__(self) -> None:
        self.reason: AbortReason | None = None
        self.phase = StopPhase.BEFORE_DISPATCH
        self.requested_at: datetime | None = None
        self.delivered_at: datetime | None = None
        self.ended_at: datetime | None = None
        self.signals: tuple[str, ...] = ()
        self.escalated = False

    def request(self, reason: AbortReason, phase: StopPhase, at: datetime | None = None) -> bool:
        """Note the first request; True if this was it."""
        if self.reason is not None:
            return False
        self.reason, self.phase, self.requested_at = reason, phase, at or now()
        return True

    def facts(self) -> Stop | None:
        """The stop as a result tells it, or None if nobody asked."""
        if self.reason is None or self.requested_at is None:
            return None
        return Stop(
            source=self.reason.source,
            reason=well_formed(self.reason.text),
            phase=self.phase,
            requested_at=self.requested_at,
            delivered_at=self.delivered_at,
            ended_at=self.ended_at,
            signals=self.signals,
            escalated=self.escalated,
        )
