"""Conversations: what a stopped turn leaves behind, and what providers accept of it. Pure: no clock, no random, no I/O.

`interruption` = functions on plain lists of messages, `rules` = what each provider refuses, `repairs` = the last guard before a
history is sent, `drafts` = what a crash leaves of a reply; `shapes` and `atoms` = how providers write, `pairing` = which result
answers which call.
"""

from toolrunner.history.drafts import Draft, UnreadableDraft, draft_from_json, draft_to_json
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
from toolrunner.history.repairs import Repair, repair
from toolrunner.history.rules import RULES, Violation, check
from toolrunner.markers import InterruptReason

__all__ = [
    "RULES",
    "Draft",
    "InterruptReason",
    "Repair",
    "UnreadableDraft",
    "Violation",
    "append_marker",
    "check",
    "close_interrupted",
    "draft_from_json",
    "draft_to_json",
    "interruption_label",
    "is_interruption_marker",
    "is_tool_in_flight_note",
    "migrate_legacy_abort_context",
    "recover_crashed_turn",
    "repair",
    "tool_in_flight_note",
    "tool_in_flight_note_label",
    "tool_in_flight_note_message",
]
