"""What ties an answer to its call. Pure."""

from collections.abc import Collection, Mapping
from typing import Any

from toolrunner.errors import ConfigError
from toolrunner.wire.reading import word
from toolrunner.wire.values import Provider, WireCall, WireResult


def required_id(provider: Provider, entry: WireCall | WireResult) -> str:
    """Return the call id, which every provider but Gemini pairs by.

    Raises:
        ConfigError: it is missing; a made-up one would be refused together with the whole request.
    """
    if not entry.call_id:
        raise ConfigError(f"call_id of {entry.name!r}", entry.call_id, f"the id that {provider} sent and pairs by")
    return entry.call_id


def unanswered(
    items: Collection[Mapping[str, Any]], calls: Collection[str], answers: Collection[str], call_key: str
) -> list[Mapping[str, Any]]:
    """Return the items whose type is in `calls` and which no item of a type in `answers` answers.

    A stored response lists what the provider's own side already answered (a hosted shell) and what an earlier turn answered.
    """
    done = {word(item, "call_id", "id") for item in items if word(item, "type") in answers} - {None}
    return [item for item in items if word(item, "type") in calls and word(item, call_key) not in done]
