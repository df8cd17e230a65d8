"""Models of the official SDKs (extra `agent`): `open_model` picks one by its provider, and imports its SDK only then. No state.

`anthropic`, `openai_chat`, `openai_responses` = one module each, which any program may import by itself; `sdk` and `sse` = what
they share.
"""

import importlib
from typing import Any, Protocol

from toolrunner.agent.model import Model
from toolrunner.errors import ConfigError, ToolrunnerError
from toolrunner.wire import Provider, provider_named

__all__ = ["ClosableModel", "MissingExtra", "open_model"]

_CLASSES = {
    Provider.ANTHROPIC: ("anthropic", "AnthropicModel"),
    Provider.OPENAI_CHAT: ("openai_chat", "OpenAIChatModel"),
    Provider.OPENAI_RESPONSES: ("openai_responses", "OpenAIResponsesModel"),
}


class MissingExtra(ToolrunnerError):
    """The provider's SDK is not installed."""

    def __init__(self, provider: str, why: object) -> None:
        super().__init__(f"{provider} needs its SDK ({why}); install the extra: pip install 'agent-toolrunner[agent]'")


class ClosableModel(Model, Protocol):
    """A model with connections of its own."""

    async def aclose(self) -> None:
        """Close them."""
        ...


def open_model(
    provider: str, name: str, *, base_url: str | None = None, api_key: str | None = None, **settings: Any
) -> ClosableModel:
    """A model of this provider. What is None the SDK finds in its own environment variables.

    Raises:
        ConfigError: the provider is unknown, or there is no SDK for it here. MissingExtra: its SDK is not installed.
    """
    known = provider_named(provider)
    if known not in _CLASSES:
        raise ConfigError("provider", str(known), f"one that is spoken here: {', '.join(_CLASSES)}")
    module, kind = _CLASSES[known]
    try:
        found = importlib.import_module(f"{__name__}.{module}")
    except ImportError as error:
        raise MissingExtra(known, error) from error
    model: ClosableModel = getattr(found, kind).at(name, base_url, api_key, **settings)
    return model
