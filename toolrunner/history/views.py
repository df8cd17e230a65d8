"""What people see of a log: the chat, and the trajectory of requests. Pure folds over records; nothing of them is sent anywhere.

Both show what a request leaves out: thoughts, half calls by their stream, failed attempts, and that something was stopped,
whatever the model is told of it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, final

from pydantic import JsonValue

from toolrunner.history.fold import reason_of
from toolrunner.markers import CANCEL_PHRASES, InterruptReason, is_host_text
from toolrunner.records import (
    AssistantAttempt,
    AssistantMessage,
    Block,
    CallBlock,
    ReasoningBlock,
    Record,
    RequestSent,
    StepEnded,
    TextBlock,
    TurnEnded,
    UserMessage,
)
from toolrunner.results import plain_text

__all__ = ["ChatItem", "ChatKind", "RequestState", "RequestView", "chat", "trajectory"]


class ChatKind(StrEnum):
    """How a line of a chat is drawn."""

    USER = "user"
    ASSISTANT = "assistant"
    THOUGHT = "thought"
    CALL = "call"
    SYSTEM = "system"
    """The host's word: a note, an event."""
    STOPPED = "stopped"


@final
@dataclass(frozen=True, slots=True)
class ChatItem:
    """One line of a chat. `seq` is that of the record it comes from; `interrupted`: it goes no further than the user read."""

    kind: ChatKind
    text: str
    seq: int
    interrupted: bool = False
    reason: InterruptReason | None = None
    call_id: str | None = None


def chat(records: Iterable[Record]) -> list[ChatItem]:
    """The conversation as its user saw it, with a line where it was stopped, whether or not the model is told of that."""
    items = list[ChatItem]()
    for record in records:
        match record:
            case UserMessage():
                items.append(_said(record))
            case AssistantMessage():
                items += [item for block in record.blocks if (item := _shown(block, record)) is not None]
            case TurnEnded(outcome="completed"):
                pass
            case TurnEnded():
                reason = reason_of(record)
                items.append(ChatItem(ChatKind.STOPPED, CANCEL_PHRASES[reason], record.seq, reason=reason))
            case _:
                pass
    return items


def _said(record: UserMessage) -> ChatItem:
    text = plain_text(record.content)
    host = record.source in ("host", "note") or is_host_text(text)
    return ChatItem(ChatKind.SYSTEM if host else ChatKind.USER, text, record.seq)


def _shown(block: Block, record: AssistantMessage) -> ChatItem | None:
    cut = record.interrupted
    match block:
        case TextBlock(text=text) if text.strip():
            return ChatItem(ChatKind.ASSISTANT, text, record.seq, interrupted=cut and not block.closed)
        case ReasoningBlock(text=text) if text.strip():
            return ChatItem(ChatKind.THOUGHT, text, record.seq, interrupted=cut and not block.closed)
        case CallBlock(closed=True):
            return ChatItem(ChatKind.CALL, block.name, record.seq, interrupted=cut, call_id=block.call_id)
        case _:
            return None


class RequestState(StrEnum):
    """How far a request has come. An interrupted one is in error, and stays there when its step ends."""

    RUNNING = "running"
    COMPLETED = "completed"
    ERROR = "error"


@final
@dataclass(frozen=True, slots=True)
class RequestView:
    """One request to a model. `result_seq` is the record that says how it ended: a message, or an attempt; None while it runs."""

    turn_id: str
    step: int
    provider: str
    model: str
    sent_seq: int
    state: RequestState = RequestState.RUNNING
    cause: Literal["", "interrupted", "cancelled", "error", "aborted", "thrown", "lost"] = ""
    result_seq: int | None = None
    blocks: tuple[Block, ...] = ()
    usage: Mapping[str, JsonValue] = field(default_factory=dict)
    stream: JsonValue = None


def trajectory(records: Iterable[Record]) -> list[RequestView]:
    """Every request in the order in which they were sent, each with its route, its end and the record that tells it."""
    views = list[RequestView]()
    running: int | None = None
    for record in records:
        match record:
            case RequestSent():
                running = len(views)
                route = (record.run_id, record.step, record.provider, record.model)
                views.append(RequestView(*route, sent_seq=record.seq))
            case AssistantMessage() | AssistantAttempt() if running is not None:
                views[running] = _ended(views[running], record)
                running = None
            case StepEnded() | TurnEnded() if running is not None:
                # Its process died before anything of it was written.
                views[running] = replace(views[running], state=RequestState.ERROR, cause="lost", result_seq=record.seq)
                running = None
            case _:
                pass
    return views


def _ended(view: RequestView, record: AssistantMessage | AssistantAttempt) -> RequestView:
    told = replace(view, result_seq=record.seq, usage=record.usage, stream=record.stream)
    if isinstance(record, AssistantAttempt):
        return replace(told, state=RequestState.ERROR, cause=record.cause)
    if record.interrupted:
        return replace(told, state=RequestState.ERROR, cause="interrupted", blocks=record.blocks)
    return replace(told, state=RequestState.COMPLETED, blocks=record.blocks)
