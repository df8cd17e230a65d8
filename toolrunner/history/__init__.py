"""Conversations: what a stopped turn leaves behind, and what providers accept of it. Pure: no clock, no random, no I/O.

On a log: `assembler` (a stream -> blocks) and `chunks`, `fold` (records -> `entries`), `projection` and `projector` (entries -> a
provider's messages, with `replies`), `closing` (repair of an open turn, forks, compaction), `views` (what people see), `drafts`
(what a crash leaves of a reply). On plain lists of messages: `interruption`, `rules` (what each provider refuses), `repairs` (the
last guard before a history is sent), `importing`. `shapes`, `atoms`, `pairing` = how providers write, and what answers what.
"""

from toolrunner.history.assembler import StreamAssembler, TruncatedCall, UnfinishedBlock
from toolrunner.history.closing import OpenTurn, closing_records, compaction, fork, safe_cut_points
from toolrunner.history.drafts import Draft, UnreadableDraft, draft_from_json, draft_to_json
from toolrunner.history.entries import History
from toolrunner.history.fold import Fold, fold
from toolrunner.history.importing import read_messages
from toolrunner.history.interruption import (
    append_marker,
    close_interrupted,
    interruption_label,
    is_interruption_marker,
    is_tool_in_flight_note,
    migrate_legacy_abort_context,
    recover_crashed_turn,
    tool_in_flight_note,
    tool_in_flight_note_label,
    tool_in_flight_note_message,
)
from toolrunner.history.projection import CHAINED_REFUSED, Unanswered, project
from toolrunner.history.projector import Projector
from toolrunner.history.repairs import Repair, repair
from toolrunner.history.rules import RULES, Violation, check
from toolrunner.history.views import chat, trajectory
from toolrunner.markers import InterruptReason

__all__ = [
    "CHAINED_REFUSED",
    "RULES",
    "Draft",
    "Fold",
    "History",
    "InterruptReason",
    "OpenTurn",
    "Projector",
    "Repair",
    "StreamAssembler",
    "TruncatedCall",
    "Unanswered",
    "UnfinishedBlock",
    "UnreadableDraft",
    "Violation",
    "append_marker",
    "chat",
    "check",
    "close_interrupted",
    "closing_records",
    "compaction",
    "draft_from_json",
    "draft_to_json",
    "fold",
    "fork",
    "interruption_label",
    "is_interruption_marker",
    "is_tool_in_flight_note",
    "migrate_legacy_abort_context",
    "project",
    "read_messages",
    "recover_crashed_turn",
    "repair",
    "safe_cut_points",
    "tool_in_flight_note",
    "tool_in_flight_note_label",
    "tool_in_flight_note_message",
    "trajectory",
]
