"""From a log of records to the history it tells. Pure: the same records give the same history, whenever and wherever.

State: a `Fold`, which takes records one by one and never looks back. What a request has carried (`request/sent`) is never told
anew: a result that comes later than that is a note at the end. So the history of a longer log begins with what was sent of a
shorter one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import final

from toolrunner.facts import EffectState
from toolrunner.history.answers import Slot, late_note, made_up_answer
from toolrunner.history.entries import Entry, History, Marked, Noted, Replied, Said, Summary
from toolrunner.markers import InterruptReason, compacted_note, interrupt_reason
from toolrunner.records import (
    AssistantAttempt,
    AssistantMessage,
    Block,
    CallBlock,
    CallDispatched,
    CallEnded,
    CallRecorded,
    CallSettled,
    CutCalls,
    HistoryCompacted,
    MarkerMode,
    Record,
    RequestSent,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from toolrunner.results import ToolResult

__all__ = ["Fold", "fold", "reason_of"]


def fold(records: Iterable[Record]) -> History:
    """The history that these records tell, in journal order. Records that say nothing of a conversation are passed over."""
    state = Fold()
    for record in records:
        state.add(record)
    return state.history()


@final
@dataclass(slots=True)
class _Told:
    """A reply in the making: its blocks, and a slot for each of its calls."""

    message: AssistantMessage
    blocks: tuple[Block, ...]
    slots: list[Slot]


@final
@dataclass(slots=True)
class Fold:
    """Takes records in journal order; `history()` is what they tell so far."""

    cut_calls: CutCalls = "omit"
    marker: MarkerMode = "user"
    _fixed: bool = False
    _entries: list[Entry | _Told] = field(default_factory=list)
    _held: list[Entry] = field(default_factory=list)
    """What was said while a request was under way: it comes behind the reply, which was made without it."""
    _in_flight: bool = False
    _sent: int = 0
    """Everything up to this record was carried by a request."""
    _turn: str | None = None
    _slots: list[Slot] = field(default_factory=list)
    """Those of all replies that may still get an answer."""
    _by_run: dict[str, Slot] = field(default_factory=dict)
    _ids: dict[str, int] = field(default_factory=dict)
    """Ids that are taken, each with the last number it was given: some servers count their calls anew in each response."""
    _surplus: int = 0
    frozen: int = 0
    """How many entries, from the first, will never change, having been sent. Less than before only after a compaction."""
    compactions: int = 0

    def add(self, record: Record) -> None:
        """Take the next record."""
        match record:
            case CallRecorded() | CallDispatched() | CallEnded() | CallSettled():
                self._add_call(record)
            case TurnStarted():
                self._start(record)
            case TurnEnded():
                self._end(record)
            case HistoryCompacted():
                self._compact(record)
            case _:
                self._add_words(record)

    def history(self, first: int = 0) -> History:
        """What the records tell so far; with `first` without the entries before that one."""
        entries = [_finished(entry) if isinstance(entry, _Told) else entry for entry in self._entries[first:]]
        return History((*entries, *self._held), self._turn, self._surplus)

    def open_slots(self) -> list[Slot]:
        """The calls of the open turn that have no answer yet, in model order."""
        return [slot for slot in self._slots if slot.result is None]

    # --- what is said ---------------------------------------------------------------------------------------------------------

    def _add_words(self, record: Record) -> None:
        match record:
            case UserMessage():
                self._say(Said(record.content, record.source, record.seq))
            case RequestSent():
                self._land()  # what was held is in this request, in the place where it stood
                self._sent, self._in_flight = max(self._sent, record.upto_seq), True
                self.frozen = max(self.frozen, self._count_through(record.upto_seq))
            case AssistantMessage():
                self._reply(record)
            case AssistantAttempt():
                self._land()
            case _:
                pass  # it says nothing of a conversation

    def _count_through(self, seq: int) -> int:
        count = len(self._entries)
        while count > self.frozen and _seq(self._entries[count - 1]) > seq:
            count -= 1
        return count

    def _start(self, record: TurnStarted) -> None:
        self._turn = record.run_id
        if not self._fixed:
            self.cut_calls, self.marker, self._fixed = record.cut_calls, record.marker, True

    def _say(self, entry: Entry) -> None:
        (self._held if self._in_flight else self._entries).append(entry)

    def _land(self) -> None:
        """No request is under way any more."""
        self._in_flight = False
        self._entries += self._held
        self._held = []

    def _reply(self, record: AssistantMessage) -> None:
        blocks, slots = list[Block](), list[Slot]()
        seen = set[str]()
        for index, block in enumerate(record.blocks):
            if not isinstance(block, CallBlock):
                blocks.append(block)
            elif self._keeps(record, block, seen):
                slot = Slot(block, self._free_id(block), record.run_id, record.seq, index)
                blocks.append(replace(block, call_id=slot.wire_id))
                slots.append(slot)
        self._slots += slots
        if blocks:
            self._entries.append(_Told(record, tuple(blocks), slots))
        self._land()

    def _keeps(self, record: AssistantMessage, call: CallBlock, seen: set[str]) -> bool:
        """Whole calls of whole responses; of a response that was cut off only by the session's wish, and never a half one."""
        if not call.closed or (record.interrupted and self.cut_calls == "omit"):
            return False
        if call.call_id in seen:
            return False  # the first of two calls with one id is the call
        if call.call_id is not None:
            seen.add(call.call_id)
        return True

    def _free_id(self, call: CallBlock) -> str | None:
        if call.call_id is None:
            return None
        name, number = call.call_id, self._ids.get(call.call_id, 1)
        while name in self._ids:
            number += 1
            # Not `~`, which providers refuse in an id.
            name = f"{call.call_id}_{number}"
        self._ids[call.call_id] = self._ids[name] = number
        return name

    # --- what became of calls -------------------------------------------------------------------------------------------------

    def _add_call(self, record: CallRecorded | CallDispatched | CallEnded | CallSettled) -> None:
        if isinstance(record, CallRecorded):
            self._bind(record)
            return
        slot = self._by_run.get(record.run_id)
        if slot is None:
            return  # made by a call or by the host, not by the model
        match record:
            case CallDispatched():
                slot.dispatched = True
            case CallEnded():
                slot.ended = record.result
                if record.result is not None and slot.result is not None and slot.awaits_end:
                    self._late(slot, record.result, record.seq)
            case CallSettled():
                self._settle(slot, record)

    def _bind(self, record: CallRecorded) -> None:
        """The first call of that id, or without ids of that name, that nobody has made yet."""
        if record.parent_run_id is not None:
            return
        for slot in self._slots:
            same = slot.call.call_id == record.call_id and (record.call_id is not None or slot.call.name == record.name)
            if slot.run_id is None and same and not slot.made_up:
                slot.run_id = record.run_id
                self._by_run[record.run_id] = slot
                return

    def _settle(self, slot: Slot, record: CallSettled) -> None:
        if slot.is_settled:
            self._surplus += 1
            return
        slot.settled = record.result
        if slot.result is None:
            slot.result, slot.answered_seq = record.result, record.seq
        elif slot.awaits_end:
            self._late(slot, record.result, record.seq)

    def _late(self, slot: Slot, result: ToolResult, seq: int) -> None:
        """News of a call that has an answer: in its place while nobody was told it, else as a note at the end, once."""
        if result.ended is None or slot.noted:
            return
        if self._sent < slot.answered_seq and not slot.compacted:
            slot.result, slot.made_up = result, False
            return
        if slot.result is not None and slot.result.ended is result.ended:
            return  # no news: its end was told, or that nobody saw it
        slot.noted = True
        self._say(Noted(late_note(slot.call.name, result), seq))

    # --- how a turn ends ------------------------------------------------------------------------------------------------------

    def _end(self, record: TurnEnded) -> None:
        for slot in self._slots:
            if slot.result is None and slot.turn_id == record.run_id:
                slot.result, slot.answered_seq, slot.made_up = made_up_answer(slot, record), record.seq, True
        self._slots = [slot for slot in self._slots if slot.run_id is None and slot.result is None]
        self._turn = None
        if record.outcome != "completed" and self.marker == "user" and not self._ends_marked():
            self._entries.append(Marked(reason_of(record), record.seq))
        self._land()  # what the host had to say comes behind the marker

    def _ends_marked(self) -> bool:
        return bool(self._entries) and isinstance(self._entries[-1], Marked)

    def _compact(self, record: HistoryCompacted) -> None:
        """What is doubtful is told again: a summary may have passed over it."""
        old = [entry for entry in self._entries if _seq(entry) <= record.through_seq]
        slots = [slot for entry in old if isinstance(entry, _Told) for slot in entry.slots]
        doubtful = [slot.call.name for slot in slots if _in_doubt(slot)]
        for slot in slots:
            slot.compacted = True
        kept: list[Entry | _Told] = [entry for entry in self._entries if _seq(entry) > record.through_seq]
        summary: list[Entry | _Told] = [Summary(item.text, item.role, record.seq) for item in record.items]
        note: list[Entry | _Told] = [Noted(compacted_note(doubtful), record.seq)] if doubtful else []
        self._entries = [*summary, *note, *kept]
        self.frozen, self.compactions = 0, self.compactions + 1


def _seq(entry: Entry | _Told) -> int:
    return entry.message.seq if isinstance(entry, _Told) else entry.seq


def _in_doubt(slot: Slot) -> bool:
    return slot.result is not None and slot.result.effects.state is EffectState.UNKNOWN


def _finished(told: _Told) -> Replied:
    message = told.message
    answers = tuple(slot.wire() for slot in told.slots)
    return Replied(message.provider, message.model, told.blocks, answers, message.interrupted, message.seq)


def reason_of(record: TurnEnded) -> InterruptReason:
    """What the marker of a turn that did not complete says."""
    if record.interrupt is not None:
        return record.interrupt
    match record.outcome:
        case "interrupted":
            return InterruptReason.CRASH
        case "aborted" if record.source:
            return interrupt_reason(record.source)
        case "aborted":
            return InterruptReason.USER
        case _:
            return InterruptReason.HOST
