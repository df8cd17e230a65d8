"""Inbox: messages on their way into turns. Queued, claimed, admitted, done are four states and never one mark. Pure; no I/O.

State: what is queued, in order, and what the open turn has taken, changed by the methods here alone. A claim is never undone:
what a turn took and did not admit is gone when it ends, and is handed to whoever stopped it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, final

from toolrunner.errors import ConfigError
from toolrunner.facts import Content, Json, Text
from toolrunner.records import InboxCancelled, InboxClaimed, InboxQueued, Record

__all__ = ["Inbox", "Message", "MessageSource", "MessageState", "Target", "content_of", "still_queued"]

Target = Literal["next-turn", "next-step"]
"""For what a message waits: a turn of its own, or the next request, whichever turn makes it."""
MessageSource = Literal["human", "steer", "host", "note"]


class MessageState(StrEnum):
    """How far a message has come. Those that were taken back, or claimed and not admitted, have no state: they are gone."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    ADMITTED = "admitted"
    """It is in the history, as `user/message`."""
    DONE = "done"
    """The turn that admitted it is over."""


@final
@dataclass(frozen=True, slots=True)
class Message:
    """One message. `wake`: it may start a turn; one that does not waits for the next that is started by something else."""

    id: str
    content: tuple[Content, ...]
    target: Target = "next-turn"
    wake: bool = True
    source: MessageSource = "human"

    @property
    def text(self) -> str:
        """Its text parts, for people."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))

    def record(self) -> InboxQueued:
        """The record that it waits."""
        return InboxQueued(run_id=self.id, content=self.content, target=self.target, wake=self.wake, source=self.source)


def content_of(said: "str | Content | Iterable[Content]") -> tuple[Content, ...]:
    """What somebody said, as content. Raises `ConfigError`: there is nothing in it, and a provider would refuse that."""
    parts: tuple[Content, ...] = (Text(said),) if isinstance(said, str) else (said,) if _is_part(said) else tuple(said)  # type: ignore[arg-type, assignment]
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        raise ConfigError("a message", said, "a text that is not blank, or other content")
    return parts


def _is_part(said: object) -> bool:
    return isinstance(getattr(said, "type", None), str)


def followed_up(value: object) -> tuple[Content, ...]:
    """What a tool adds behind its result, as content."""
    return (Text(value),) if isinstance(value, str) else (Json(value),)  # type: ignore[arg-type]


@final
class Inbox:
    """One agent's. Whoever changes it writes the records of what these methods return; none is written here."""

    def __init__(self, queued: Iterable[Message] = ()) -> None:
        self._queued: list[Message] = list(queued)
        self._claimed: list[Message] = []
        self._admitted: list[Message] = []
        self._done: dict[str, None] = {}

    @property
    def queued(self) -> tuple[Message, ...]:
        """What waits, in the order in which it came."""
        return tuple(self._queued)

    @property
    def claimed(self) -> tuple[Message, ...]:
        """What the open turn has taken and not admitted."""
        return tuple(self._claimed)

    @property
    def has_work(self) -> bool:
        """Whether something waits that may start a turn."""
        return any(message.wake for message in self._queued)

    @property
    def has_steer(self) -> bool:
        """Whether something waits for the next step that is worth a request of its own."""
        return any(message.wake and message.target == "next-step" for message in self._queued)

    def state(self, message_id: str) -> MessageState | None:
        """How far a message has come; None: it is not known here, or gone."""
        for messages, state in (
            (self._queued, MessageState.QUEUED),
            (self._claimed, MessageState.CLAIMED),
            (self._admitted, MessageState.ADMITTED),
        ):
            if any(one.id == message_id for one in messages):
                return state
        return MessageState.DONE if message_id in self._done else None

    def queue(self, message: Message) -> None:
        """Take a message. Raises `ConfigError`: one with its id is known already."""
        if self.state(message.id) is not None:
            raise ConfigError("a message's id", message.id, "one that no other message has")
        self._queued.append(message)

    def claim(self, *, opens_turn: bool) -> tuple[Message, ...]:
        """Take all that waits for the next step; with `opens_turn` also the first that waits for a turn, behind it."""
        taken = [one for one in self._queued if one.target == "next-step"]
        if opens_turn:
            taken += [one for one in self._queued if one.target == "next-turn"][:1]
        self._queued = [one for one in self._queued if one not in taken]
        self._claimed += taken
        return tuple(taken)

    def admit(self) -> tuple[Message, ...]:
        """What was claimed is in the history from here on."""
        admitted, self._claimed = tuple(self._claimed), []
        self._admitted += admitted
        return admitted

    def end_turn(self) -> tuple[Message, ...]:
        """The turn is over: what it admitted is done. Returns what it had claimed and not admitted, which is gone."""
        lost, self._claimed = tuple(self._claimed), []
        self._done |= dict.fromkeys(one.id for one in self._admitted)
        for known in list(self._done)[: max(0, len(self._done) - KEPT_DONE)]:
            del self._done[known]
        self._admitted = []
        return lost

    def drop(self) -> tuple[Message, ...]:
        """Take back what waits, next-step first. The host's events stay: they are true whoever stops what."""
        return self._take_back(lambda message: message.source != "host")

    def remove(self, message_id: str) -> Message | None:
        """Take one message back that still waits."""
        found = self._take_back(lambda message: message.id == message_id)
        return found[0] if found else None

    def _take_back(self, goes: Callable[[Message], bool]) -> tuple[Message, ...]:
        gone = [one for one in self._queued if goes(one)]
        self._queued = [one for one in self._queued if not goes(one)]
        return tuple(sorted(gone, key=lambda one: one.target != "next-step"))


KEPT_DONE = 1_000
"""Messages that are done and still known by their state; as many as a runner keeps results."""


def still_queued(records: Iterable[Record]) -> list[Message]:
    """What a log says was queued, and neither claimed nor taken back: it waits for the next wake."""
    waiting: dict[str, Message] = {}
    for record in records:
        match record:
            case InboxQueued():
                waiting[record.run_id] = Message(record.run_id, record.content, record.target, record.wake, record.source)
            case InboxClaimed() | InboxCancelled():
                for message_id in record.message_ids:
                    waiting.pop(message_id, None)
            case _:
                pass
    return list(waiting.values())
