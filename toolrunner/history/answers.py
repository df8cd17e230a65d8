"""What answers a call: the result on record, or, once its turn is over without one, what the records allow to say. Pure.

Doubt only weakens: a call that was dispatched is lost, its effects unknown; only one that never was is said not to have started.
"""

from dataclasses import dataclass, replace
from typing import final

from toolrunner.facts import Effects, EffectState, Evidence, Stop, StopPhase
from toolrunner.markers import late_result_note
from toolrunner.records import CallBlock, TurnEnded
from toolrunner.results import Code, Ended, Error, ErrorKind, Outcome, Retry, ToolResult
from toolrunner.wire import WireResult

NEVER = Effects(EffectState.NONE, Evidence.NOT_STARTED, complete=True)
UNKNOWN = Effects(EffectState.UNKNOWN, None)
_LOST = "no end of this call is on record, so how far it came is not known"


@final
@dataclass(slots=True)
class Slot:
    """The place of one call's answer. State: filled by the fold alone."""

    call: CallBlock
    wire_id: str | None
    """The id it has in requests: its own, unless an earlier call has that already."""
    turn_id: str
    message_seq: int
    index: int
    run_id: str | None = None
    dispatched: bool = False
    ended: ToolResult | None = None
    settled: ToolResult | None = None
    result: ToolResult | None = None
    """What answers it."""
    answered_seq: int = 0
    made_up: bool = False
    """The answer is no record: its turn ended without one."""
    noted: bool = False
    """A late end was told already."""
    compacted: bool = False
    """A summary stands for it, so its answer is told no more."""

    @property
    def awaits_end(self) -> bool:
        """Whether an end that comes now is news: nothing answered it, or something that was no end."""
        return self.result is None or self.made_up or _runs_on(self.result)

    @property
    def is_settled(self) -> bool:
        """Whether its result is on record and final."""
        return self.settled is not None and not _runs_on(self.settled)

    def wire(self) -> WireResult | None:
        """The answer as it is sent, under the call's own names."""
        if self.result is None:
            return None
        call = self.call
        told = self.result.to_wire()
        return replace(told, call_id=self.wire_id, name=call.name, kind=call.kind, provider_meta=call.provider_meta)


def _runs_on(result: ToolResult) -> bool:
    """Whether a result was published before the end of its body (`settle_timeout`)."""
    return result.started and result.ended is None


def made_up_answer(slot: Slot, end: TurnEnded) -> ToolResult:
    """What is true of a call whose turn is over and that has no result."""
    run_id = slot.run_id or f"{slot.turn_id}:{slot.message_seq}:{slot.index}"
    if slot.ended is not None:
        return slot.ended
    if slot.dispatched:
        return _lost(slot, run_id)
    return not_started(slot, run_id, end)


def not_started(slot: Slot, run_id: str, end: TurnEnded) -> ToolResult:
    """It was never dispatched, so its body was never entered."""
    stop = None
    if end.source:
        stop = Stop(end.source, end.reason, StopPhase.BEFORE_DISPATCH, requested_at=end.at)
    return ToolResult(
        run_id=run_id,
        name=slot.call.name,
        outcome=Outcome.ABORTED,
        code=Code.ABORTED_BEFORE_DISPATCH,
        started=False,
        effects=NEVER,
        call_id=slot.call.call_id,
        kind=slot.call.kind,
        retry=Retry.SAFE,
        stop=stop,
    )


def _lost(slot: Slot, run_id: str) -> ToolResult:
    return ToolResult(
        run_id=run_id,
        name=slot.call.name,
        outcome=Outcome.FAILED,
        code=Code.LOST,
        started=True,
        ended=Ended.LOST,
        effects=UNKNOWN,
        call_id=slot.call.call_id,
        kind=slot.call.kind,
        error=Error(ErrorKind.INTERNAL, _LOST),
        attempts=1,
        retry=Retry.CHECK_FIRST,
        still_running=None,
    )


def late_note(name: str, result: ToolResult) -> str:
    """The note about an end that came after its answer had been sent."""
    effects = result.effects
    assumed = effects.state is EffectState.COMPLETED and effects.evidence is Evidence.ASSUMED
    return late_result_note(name, result.ended or Ended.LOST, "assumed" if assumed else effects.state)
