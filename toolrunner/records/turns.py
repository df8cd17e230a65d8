"""A conversation: turns, steps, what was said, what was asked of a model. Frozen; no state. `run_id` is the id of the turn.

There are no records of tools here: a message names its calls, and what became of them is folded from `call/*`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from toolrunner.facts import Content
from toolrunner.markers import InterruptReason
from toolrunner.records.base import BaseRecord
from toolrunner.records.blocks import Block

CutCalls = Literal["omit", "answer"]
"""What becomes of whole calls in a response that was cut off: left out, or kept and answered as not started."""
MarkerMode = Literal["user", "off"]
"""Whether the model is told of an interruption, by a text in the user's role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(BaseRecord):
    """A turn was opened. The switches are those of the session: the first turn's count, whatever later ones say."""

    cut_calls: CutCalls = "omit"
    marker: MarkerMode = "user"
    type: Literal["turn/start"] = "turn/start"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage(BaseRecord):
    """Something was said to the model, and is in every request from here on. `message_id` is that of the inbox it came from."""

    content: tuple[Content, ...]
    source: Literal["human", "steer", "host", "note"] = "human"
    message_id: str | None = None
    type: Literal["user/message"] = "user/message"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted(BaseRecord):
    """A step, one request to a model, begins."""

    step: int
    type: Literal["step/start"] = "step/start"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSent(BaseRecord):
    """A request left that holds the history of all records up to `upto_seq`: from here on that part is never written anew.

    The digests are of the system prompt and the tool list, which stand before the history and are no part of it.
    """

    step: int
    provider: str
    model: str
    upto_seq: int
    system_digest: str = ""
    tools_digest: str = ""
    type: Literal["request/sent"] = "request/sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage(BaseRecord):
    """What the model said, as far as it was delivered. `interrupted`: the user stopped it, and has read this much.

    `stream` is the exact timed stream it was assembled from, half calls included; `replay` what its provider wants back with the
    blocks, one entry each; `usage` as the provider counted.
    """

    step: int
    provider: str
    model: str
    blocks: tuple[Block, ...]
    interrupted: bool = False
    stop: str | None = None
    stream: JsonValue = None
    usage: Mapping[str, JsonValue] = field(default_factory=dict)
    replay: tuple[JsonValue, ...] | None = None
    type: Literal["assistant/message"] = "assistant/message"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantAttempt(BaseRecord):
    """A response that never joins the history: it failed, or was stopped before anything of it could be seen. For diagnosis."""

    step: int
    provider: str
    model: str
    cause: Literal["cancelled", "error", "aborted", "thrown"]
    text: str = ""
    stream: JsonValue = None
    usage: Mapping[str, JsonValue] = field(default_factory=dict)
    type: Literal["assistant/attempt"] = "assistant/attempt"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnded(BaseRecord):
    """The step is over, calls included."""

    step: int
    type: Literal["step/end"] = "step/end"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded(BaseRecord):
    """The turn is over. `interrupted`: its process died, and this was written at the next opening.

    `source` and `reason` are the first cause of a stop; `interrupt` is what the marker says, None on a turn that completed.
    """

    outcome: Literal["completed", "aborted", "error", "interrupted"]
    source: str = ""
    reason: str = ""
    interrupt: InterruptReason | None = None
    type: Literal["turn/end"] = "turn/end"


@dataclass(frozen=True, slots=True)
class CompactedItem:
    """A text that stands for a part of the history."""

    text: str
    role: Literal["user", "assistant"] = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCompacted(BaseRecord):
    """`items` stand for everything up to `through_seq`; `by` says who wrote them. The records themselves stay in the journal."""

    through_seq: int
    items: tuple[CompactedItem, ...]
    by: str
    type: Literal["history/compacted"] = "history/compacted"
