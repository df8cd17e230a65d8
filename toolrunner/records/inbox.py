"""Messages on their way into a conversation: queued, claimed, admitted (`user/message`), done (`turn/end`). Frozen; no state."""

from dataclasses import dataclass
from typing import Literal

from toolrunner.facts import Content
from toolrunner.records.base import BaseRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxQueued(BaseRecord):
    """A message waits. `run_id` is its own id; `target` says for what it waits, `wake` whether it may start a turn."""

    content: tuple[Content, ...]
    target: Literal["next-turn", "next-step"] = "next-turn"
    wake: bool = True
    source: Literal["human", "steer", "host", "note"] = "human"
    type: Literal["inbox/queued"] = "inbox/queued"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxClaimed(BaseRecord):
    """The turn `run_id` took these messages. A claim is never undone: what is not admitted then is gone, not queued again."""

    message_ids: tuple[str, ...]
    type: Literal["inbox/claimed"] = "inbox/claimed"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxCancelled(BaseRecord):
    """These messages were taken back before anybody claimed them, and handed to whoever cancelled. `run_id`: the turn, or ""."""

    message_ids: tuple[str, ...]
    reason: str = ""
    type: Literal["inbox/cancelled"] = "inbox/cancelled"
