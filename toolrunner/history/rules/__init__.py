"""What each provider refuses, rule by rule: one table per provider, one small function per rule. Pure; no state.

A rule's id is the one of the catalogue of cases (tests/cases/rules.toml), which also says where it was read or seen.
"""

from collections.abc import Sequence
from types import MappingProxyType

from toolrunner.history.rules.anthropic import ANTHROPIC
from toolrunner.history.rules.gemini import GEMINI
from toolrunner.history.rules.gemini_interactions import INTERACTIONS
from toolrunner.history.rules.openai_chat import CHAT
from toolrunner.history.rules.openai_responses import RESPONSES
from toolrunner.history.rules.view import Rule, Violation, viewed
from toolrunner.history.shapes import shape_of
from toolrunner.wire import Provider

__all__ = ["RULES", "Rule", "Violation", "check"]

RULES: MappingProxyType[Provider, MappingProxyType[str, Rule]] = MappingProxyType(
    {
        Provider.ANTHROPIC: ANTHROPIC,
        Provider.OPENAI_CHAT: CHAT,
        Provider.OPENAI_RESPONSES: RESPONSES,
        Provider.GEMINI: GEMINI,
        Provider.GEMINI_INTERACTIONS: INTERACTIONS,
    }
)


def check(messages: Sequence[object], provider: str, *, sent: Sequence[object] | None = None) -> list[Violation]:
    """What the provider would refuse in this conversation, were it sent now; [] when there is nothing.

    Args:
        messages: the list that a request carries: `messages`, `input` or `contents`.
        provider: a `Provider` or its name.
        sent: what the last request carried; what follows must extend it, or every cache of it is lost (AN11, anthropic only).

    Raises:
        ConfigError: the provider is unknown.
        MalformedItem: a message is not of the form its API promises, so no rule can be applied to it.
    """
    shape = shape_of(provider)
    view = viewed(shape, messages, sent)
    return [violation for rule in RULES[shape.provider].values() for violation in rule(view)]
