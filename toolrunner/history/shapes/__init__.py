"""How each provider writes a conversation: one module per provider, each a `ConversationShape`; this one only picks it. Pure."""

from types import MappingProxyType

from toolrunner.history.atoms import ConversationShape
from toolrunner.history.shapes.anthropic import AnthropicConversation
from toolrunner.history.shapes.gemini import GeminiConversation
from toolrunner.history.shapes.gemini_interactions import InteractionsConversation
from toolrunner.history.shapes.openai_chat import ChatConversation
from toolrunner.history.shapes.openai_responses import ResponsesConversation
from toolrunner.wire import Provider, provider_named

__all__ = ["SHAPES", "shape_of"]

SHAPES: MappingProxyType[Provider, ConversationShape] = MappingProxyType(
    {
        Provider.ANTHROPIC: AnthropicConversation(),
        Provider.OPENAI_CHAT: ChatConversation(),
        Provider.OPENAI_RESPONSES: ResponsesConversation(),
        Provider.GEMINI: GeminiConversation(),
        Provider.GEMINI_INTERACTIONS: InteractionsConversation(),
    }
)


def shape_of(provider: str) -> ConversationShape:
    """The shape of a `Provider` or its name. Raises ConfigError: there is none; the message names those there are."""
    return SHAPES[provider_named(provider)]
