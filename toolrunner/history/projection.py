"""From a history to what a provider is sent, and back. Pure: the same history gives the same bytes.

Entry by entry, in order; what one entry becomes depends on nothing behind it, so a longer history only adds. Only where roles
must take turns do neighbours of one side become one message, which then grows at its end.
"""

from collections.abc import Callable, Sequence
from types import MappingProxyType

from toolrunner.errors import ToolrunnerError
from toolrunner.facts import Text
from toolrunner.history.atoms import ConversationShape, joined, take_apart
from toolrunner.history.entries import Entry, History, Marked, Noted, Replied, Said, Summary
from toolrunner.history.replies import anthropic, gemini, gemini_interactions, openai_chat, openai_responses
from toolrunner.history.replies.common import made_up_id
from toolrunner.history.shapes import shape_of
from toolrunner.markers import marker_text
from toolrunner.records import TextBlock
from toolrunner.wire import Item, Provider, WireResult, result_messages

__all__ = ["CHAINED_REFUSED", "Unanswered", "project"]

CHAINED_REFUSED = (
    "a conversation that the server holds is not written: what it holds of a stopped response cannot be known. "
    "Send the whole history with store=False."
)
"""What is said to whoever asks for `previous_response_id` or a server's conversation."""

_REPLIES: MappingProxyType[Provider, Callable[[Replied, str | None], list[Item]]] = MappingProxyType(
    {
        Provider.ANTHROPIC: anthropic.messages,
        Provider.OPENAI_CHAT: openai_chat.messages,
        Provider.OPENAI_RESPONSES: openai_responses.messages,
        Provider.GEMINI: gemini.messages,
        Provider.GEMINI_INTERACTIONS: gemini_interactions.messages,
    }
)


class Unanswered(ToolrunnerError):
    """A request was to be built while calls of the last response have no result yet; the provider would refuse it, for good."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"{len(names)} calls have no result yet: {', '.join(names)}; wait for them, or end the turn")
        self.names = tuple(names)


def project(history: History, provider: str, model: str | None = None) -> list[Item]:
    """The history as the provider's `messages`, `input` (with store=False) or `contents`.

    Args:
        history: what `fold` told.
        provider: a `Provider` or its name.
        model: who is asked. Thoughts and signatures of others are left out; None: whatever its provider made is its own.

    Raises:
        ConfigError: the provider is unknown.
        Unanswered: a call has no result yet.
    """
    shape = shape_of(provider)
    return joined(shape, take_apart(shape, unjoined(shape, history, model)))


def unjoined(shape: ConversationShape, history: History, model: str | None) -> list[Item]:
    """The messages of all entries, neighbours of one side not joined yet. Raises Unanswered."""
    if history.unanswered:
        raise Unanswered([call.name for call in history.unanswered])
    return [message for entry in history.entries for message in entry_messages(shape, entry, model)]


def entry_messages(shape: ConversationShape, entry: Entry, model: str | None) -> list[Item]:
    """The messages of one entry, neighbours not joined yet."""
    match entry:
        case Said():
            return [shape.user(entry.content)]
        case Marked():
            return [shape.user((Text(marker_text(entry.reason)),))]
        case Noted():
            return [shape.user((Text(entry.text),))]
        case Summary(role="user"):
            return [shape.user((Text(entry.text),))]
        case Summary():
            said = Replied(shape.provider, "", (TextBlock(entry.text),))
            return _REPLIES[shape.provider](said, None)
        case Replied():
            return [*_REPLIES[shape.provider](entry, model), *_answers(shape, entry)]


def _answers(shape: ConversationShape, reply: Replied) -> list[Item]:
    told = list[WireResult]()
    for number, (call, answer) in enumerate(zip(reply.calls, reply.answers, strict=True)):
        if answer is None or not call.name.strip():
            continue  # a call that names nothing goes, and its answer with it
        own = answer if reply.provider == shape.provider else foreign_answer(answer, shape.provider, reply.seq, number)
        told.append(own)
    return result_messages(shape.provider, told)


def foreign_answer(answer: WireResult, provider: Provider, seq: int, number: int) -> WireResult:
    """The answer to another provider's call: a function's, without what only that provider pairs on."""
    call_id = answer.call_id
    if call_id is None and provider is not Provider.GEMINI:
        call_id = made_up_id(seq, number)
    return WireResult(call_id, answer.name, content=answer.content, is_error=answer.is_error)
