"""A history in no provider's words: what was said, in order, each call with its one answer. Frozen; no state."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, final

from toolrunner.facts import Content
from toolrunner.markers import InterruptReason
from toolrunner.records import Block, CallBlock
from toolrunner.wire import WireResult

__all__ = ["Entry", "History", "Marked", "Noted", "Replied", "Said", "Summary"]


@final
@dataclass(frozen=True, slots=True)
class Said:
    """Something that was said to the model."""

    content: tuple[Content, ...]
    source: str = "human"
    seq: int = 0


@final
@dataclass(frozen=True, slots=True)
class Replied:
    """What a model said, and the answers to its calls, in the order of the calls. An answer of None is still to come.

    `provider` and `model` say who sealed its thoughts: nobody else takes them.
    """

    provider: str
    model: str
    blocks: tuple[Block, ...]
    answers: tuple[WireResult | None, ...] = ()
    interrupted: bool = False
    seq: int = 0

    @property
    def calls(self) -> tuple[CallBlock, ...]:
        return tuple(block for block in self.blocks if isinstance(block, CallBlock))


@final
@dataclass(frozen=True, slots=True)
class Marked:
    """The turn before was interrupted."""

    reason: InterruptReason
    seq: int = 0


@final
@dataclass(frozen=True, slots=True)
class Noted:
    """A generated note of the host's (`toolrunner.markers`)."""

    text: str
    seq: int = 0


@final
@dataclass(frozen=True, slots=True)
class Summary:
    """A text that stands for an earlier part of the history."""

    text: str
    role: Literal["user", "assistant"] = "user"
    seq: int = 0


Entry = Said | Replied | Marked | Noted | Summary


@final
@dataclass(frozen=True, slots=True)
class History:
    """The history after some records. `open_turn`: the id of a turn that is not over, or None."""

    entries: tuple[Entry, ...] = ()
    open_turn: str | None = None
    surplus: int = 0
    """Second results of calls, which are never used: a bug of whoever wrote them."""

    @property
    def unanswered(self) -> tuple[CallBlock, ...]:
        """Calls without an answer yet, in model order. With one of these no request may be sent."""
        return tuple(call for reply in self.replies() for call, answer in _answered(reply) if answer is None)

    def replies(self) -> Iterator[Replied]:
        return (entry for entry in self.entries if isinstance(entry, Replied))


def _answered(reply: Replied) -> Iterator[tuple[CallBlock, WireResult | None]]:
    return zip(reply.calls, reply.answers, strict=True)
