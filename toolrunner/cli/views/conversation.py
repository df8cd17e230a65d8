"""Records of a conversation in words: who it is about, what happened, and what is worth saying about it. Pure.

As in `steps`, foreign text is quoted as it is; whoever prints it makes it harmless.
"""

from collections.abc import Iterable, Mapping
from functools import singledispatch
from typing import Any

from toolrunner import records
from toolrunner.facts import Content, Text

STEP_NAMES: Mapping[str, str] = {
    "turn/start": "begins",
    "turn/end": "ends",
    "step/start": "begins",
    "step/end": "ends",
    "user/message": "says",
    "request/sent": "asks",
    "assistant/message": "answers",
    "assistant/attempt": "breaks off",
    "inbox/cancelled": "taken back",
}
"""Verbs, to be read behind the `subject`. Names that are not just the second half of the record's type."""

_SUBJECTS: Mapping[str, str] = {
    "turn": "turn",
    "step": "step",
    "request": "step",
    "user": "user",
    "assistant": "model",
    "history": "history",
    "inbox": "inbox",
}
"""By the first half of a record's type; also for one that this version cannot read."""

_SPEAKERS: Mapping[str, str] = {"human": "user", "steer": "user, meanwhile", "host": "host", "note": "note"}

_CAUSES: Mapping[str, str] = {
    "cancelled": "stopped before anything of it could be seen",
    "aborted": "stopped before anything of it could be seen",
    "error": "the request failed",
    "thrown": "the request failed",
}


def subject(record: Any) -> str:
    """Who or what a record is about that is no call's; empty for any other."""
    if isinstance(record, records.UserMessage):
        return _SPEAKERS[record.source]
    if isinstance(record, records.StepStarted | records.StepEnded | records.RequestSent):
        return f"step {record.step}"
    return _SUBJECTS.get(str(record.type).partition("/")[0], "")


@singledispatch
def said(record: Any) -> str:
    """What is worth saying about a record besides its name. One of a type that is not known here says nothing."""
    del record
    return ""


@said.register
def _(record: records.UserMessage) -> str:
    return _content(record.content)


@said.register
def _(record: records.RequestSent) -> str:
    return f"{record.provider} {record.model}"


@said.register
def _(record: records.AssistantMessage) -> str:
    words = [_block(block) for block in record.blocks]
    words += ["stopped here"] if record.interrupted else []
    return "; ".join(word for word in words if word)


@said.register
def _(record: records.AssistantAttempt) -> str:
    return "; ".join(word for word in (_CAUSES[record.cause], _one_line(record.text)) if word)


@said.register
def _(record: records.TurnEnded) -> str:
    if record.outcome == "interrupted":
        return "interrupted: its program died"
    by = f" by {record.source}" if record.source else ""
    return f"{record.outcome}{by}" + (f": {_one_line(record.reason)}" if record.reason else "")


@said.register
def _(record: records.HistoryCompacted) -> str:
    texts = " ".join(_one_line(item.text) for item in record.items)
    return f"everything up to record {record.through_seq}, by {record.by}: {texts}"


@said.register
def _(record: records.InboxQueued) -> str:
    target = "for the next step" if record.target == "next-step" else "for the next turn"
    return f"{target}: {_content(record.content)}"


@said.register
def _(record: records.InboxClaimed) -> str:
    return _messages(record.message_ids)


@said.register
def _(record: records.InboxCancelled) -> str:
    return _messages(record.message_ids) + (f": {_one_line(record.reason)}" if record.reason else "")


def _content(content: Iterable[Content]) -> str:
    """Texts as they are, everything else by its kind."""
    return " ".join(_one_line(one.text) if isinstance(one, Text) else f"[{one.type}]" for one in content)


def _block(block: records.Block) -> str:
    match block:
        case records.TextBlock():
            return _one_line(block.text)
        case records.CallBlock():
            known = f" ({block.call_id})" if block.call_id is not None else ""
            return f"calls {block.name}{known}" + ("" if block.closed else ", cut off")
        case records.ReasoningBlock() | records.RedactedBlock():
            return "[thoughts]"
        case records.UnknownBlock():
            return f"[{block.item.get('type', 'unknown')}]"


def _messages(ids: tuple[str, ...]) -> str:
    return f"{len(ids)} message{'s' if len(ids) != 1 else ''}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
