"""The texts that the host itself puts into a conversation: interruption markers and generated notes. Pure; no state.

Every text comes from a closed set and is recognised exactly: markers by membership, notes by taking their words apart, building
the note again and comparing. So nothing a user, a model or a tool wrote is ever taken for the host's word. None of them
instructs, addresses anybody or tells what the model did: such text in a user's turn reads as an injected prompt, and models
refuse it.
"""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from types import MappingProxyType

from toolrunner.errors import ConfigError
from toolrunner.facts import EffectState, Source


class InterruptReason(StrEnum):
    """Why a turn was interrupted. It selects the marker's text only."""

    USER = "user"
    COST = "cost"
    RESTART = "restart"
    """Set when a session is loaded: the runner was restarted on purpose."""
    HOST = "host"
    OWNER = "owner"
    CRASH = "crash"
    """Set when a session is loaded: the process died with a turn open."""
    UNKNOWN = "unknown"
    """Set when a session is loaded that was saved by a version which did not say why."""


_MARKERS = MappingProxyType(
    {
        InterruptReason.USER: "[Request interrupted by user]",
        InterruptReason.COST: "[Request interrupted: cost cap reached]",
        InterruptReason.RESTART: "[Request interrupted: runner restarted]",
        InterruptReason.HOST: "[Request interrupted: stopped by the host]",
        InterruptReason.OWNER: "[Request interrupted: owner revoked]",
        InterruptReason.CRASH: "[Request interrupted: runner stopped unexpectedly]",
        InterruptReason.UNKNOWN: "[Request interrupted]",
    }
)
_REASONS = MappingProxyType({text: reason for reason, text in _MARKERS.items()})

MARKERS = frozenset(_MARKERS.values())
"""Every marker this version writes or knows."""

CANCEL_PHRASES = MappingProxyType({reason: text[1:-1] for reason, text in _MARKERS.items()})
"""A marker without its brackets: what clients show, and how a note begins."""

_BY_SOURCE: MappingProxyType[str, InterruptReason] = MappingProxyType(
    {
        Source.CALLER: InterruptReason.USER,
        Source.APPROVER: InterruptReason.USER,
        Source.HOOK: InterruptReason.USER,
        Source.PARENT: InterruptReason.USER,
        Source.COST: InterruptReason.COST,
        Source.SHUTDOWN: InterruptReason.HOST,
        Source.HOST: InterruptReason.HOST,
        Source.TIMEOUT: InterruptReason.HOST,
        Source.PEER_DISCONNECTED: InterruptReason.OWNER,
    }
)

UNRECOGNISED_TOOL = "an unrecognised tool"
"""Stands for a name that is not shown: names come from the model, and a note stands in the user's role."""

_PLAUSIBLE_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")

INSTRUCTION_WORDS = frozenset(
    {"you", "your", "yours", "please", "continue", "resume", "retry", "ignore", "must", "should", "shall", "never", "always"}
    | {"remember", "note", "notes", "instruction", "instructions", "instead", "don't", "let's", "we", "i", "model", "assistant"}
)
"""Words that no text of the host's own contains: they instruct, address somebody, or speak for the model."""


def instruction_words(text: str) -> tuple[str, ...]:
    """The words of `text` that are on the deny list, in order."""
    return tuple(word for word in re.findall(r"[a-z']+", text.lower()) if word in INSTRUCTION_WORDS)


def interrupt_reason(source: str) -> InterruptReason:
    """The reason to mark a turn with that was stopped by `source` (`toolrunner.facts.Source`, or `wrapper:NAME`)."""
    if source.startswith("wrapper:"):
        return InterruptReason.USER
    # A source that nobody here knows is some part of the host.
    return _BY_SOURCE.get(source, InterruptReason.HOST)


def marker_text(reason: InterruptReason) -> str:
    """The marker for `reason`, brackets included."""
    return _MARKERS[reason]


def is_interruption_marker(text: object) -> bool:
    """Whether `text` is exactly one of the markers. What merely begins like one is its author's own text."""
    return isinstance(text, str) and text in MARKERS


def interruption_label(text: object) -> str | None:
    """A marker without its brackets, for display; None for anything that is no marker."""
    return text[1:-1] if isinstance(text, str) and text in MARKERS else None


def marker_reason(text: str) -> InterruptReason | None:
    """The reason that a marker was written for; None for anything that is no marker."""
    return _REASONS.get(text)


EARLIER_LEFT_OUT = "[Earlier turns are not part of this conversation]"
"""Stands at the beginning of a history that was cut where it began with the model's words."""


# --- notes about calls that nobody reported on ---------------------------------------------------------------------------------

_IN_FLIGHT = re.compile(r"\[(?P<phrase>[^\[\];]+); (?P<names>[^\[\];]+) may have already started\]")


def tool_in_flight_note(reason: InterruptReason, tools: Sequence[str]) -> str:
    """The note for calls of a stopped response of which nobody knows whether they began. Claims no more than that they may have.

    Raises:
        ConfigError: `tools` is empty; a note about nothing says nothing.
    """
    if not tools:
        raise ConfigError("tools", tools, "the name of at least one tool")
    return f"[{CANCEL_PHRASES[reason]}; {_names(tools)} may have already started]"


def is_tool_in_flight_note(text: object) -> bool:
    """Whether `text` is exactly a note that `tool_in_flight_note` writes: never a user's words, a system line on replay."""
    return tool_in_flight_note_label(text) is not None


def tool_in_flight_note_label(text: object) -> str | None:
    """Such a note without its brackets, for display; None for anything else."""
    found = _IN_FLIGHT.fullmatch(text) if isinstance(text, str) else None
    if found is None or (reason := _REASONS.get(f"[{found['phrase']}]")) is None:
        return None
    names = [name[1:-1] if name.startswith("`") else "" for name in found["names"].split(", ")]
    return found[0][1:-1] if tool_in_flight_note(reason, names) == text else None


def _names(tools: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" if _PLAUSIBLE_NAME.fullmatch(name) else UNRECOGNISED_TOOL for name in tools)


# --- notes about results that came after their answer had been sent ------------------------------------------------------------

LATE_ENDS = MappingProxyType(
    {
        "returned": "it came to its end",
        "raised": "it failed",
        "stopped": "it was stopped",
        "lost": "its end was not seen",
    }
)
"""How it ended, by the words of `toolrunner.results.Ended`."""

LATE_EFFECTS = MappingProxyType(
    {
        EffectState.NONE.value: "it changed nothing",
        EffectState.COMPLETED.value: "its change was made",
        EffectState.PARTIAL.value: "at least part of its changes were made",
        EffectState.UNKNOWN.value: "whether it changed anything is not known",
        EffectState.REVERTED.value: "its changes were undone",
        "assumed": "it may have taken effect",
    }
)
"""What is known of its effects; `assumed` = completed without evidence, which claims nothing."""

_LATE = re.compile(r"\[Late result of (?P<name>[^\[\];]+): (?P<end>[^\[\];]+); (?P<effects>[^\[\];]+)\]")


def late_result_note(tool: str, ended: str, effects: str) -> str:
    """The note for a call that ended after its answer had been sent. `ended`, `effects`: keys of LATE_ENDS, LATE_EFFECTS."""
    return f"[Late result of {_names([tool])}: {LATE_ENDS[ended]}; {LATE_EFFECTS[effects]}]"


def is_late_result_note(text: object) -> bool:
    """Whether `text` is exactly a note that `late_result_note` writes."""
    found = _LATE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return False
    name = found["name"][1:-1] if found["name"].startswith("`") else ""
    told = (_key(LATE_ENDS, found["end"]), _key(LATE_EFFECTS, found["effects"]))
    return None not in told and late_result_note(name, *map(str, told)) == text


def _key(words: MappingProxyType[str, str], said: str) -> str | None:
    return next((key for key, text in words.items() if text == said), None)


# --- notes about calls that a summary stands for --------------------------------------------------------------------------------

_COMPACTED = re.compile(r"\[Left out above: calls of (?P<names>[^\[\];]+); whether these changed anything is not known\]")


def compacted_note(tools: Sequence[str]) -> str:
    """The note about calls in doubt that a summary stands for: it may have passed over them. `tools`: a name for each call."""
    return f"[Left out above: calls of {_names(tools)}; whether these changed anything is not known]"


def is_compacted_note(text: object) -> bool:
    """Whether `text` is exactly a note that `compacted_note` writes."""
    found = _COMPACTED.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return False
    return compacted_note([name[1:-1] if name.startswith("`") else "" for name in found["names"].split(", ")]) == text


def is_host_text(text: object) -> bool:
    """Whether `text` is the host's own (a marker or a note), so neither a user's request nor a user's words to keep."""
    known = is_interruption_marker(text) or text == EARLIER_LEFT_OUT
    return known or is_tool_in_flight_note(text) or is_late_result_note(text) or is_compacted_note(text)
