"""Provider shapes as pure functions over plain dicts: tool lists, calls, results. No SDK is imported, nothing is kept.

    calls = calls_in("anthropic", response)
    ...                                             # run them
    messages += result_messages("anthropic", results)

One module per provider, each a `Shape`; this one only picks it. Items are read from dicts or SDK objects and written as dicts.
"""

import difflib
from collections.abc import Sequence
from types import MappingProxyType

from toolrunner.errors import ConfigError
from toolrunner.wire.anthropic import AnthropicShape
from toolrunner.wire.gemini import GeminiShape
from toolrunner.wire.gemini_interactions import GeminiInteractionsShape
from toolrunner.wire.openai_chat import OpenAIChatShape
from toolrunner.wire.openai_responses import OpenAIResponsesShape
from toolrunner.wire.reading import described, opened
from toolrunner.wire.values import CallKind, Item, MalformedItem, Provider, Shape, ToolSpec, WireCall, WireResult

__all__ = [
    "CallKind",
    "Item",
    "MalformedItem",
    "Provider",
    "Shape",
    "ToolSpec",
    "WireCall",
    "WireResult",
    "call_from_item",
    "call_item",
    "calls_in",
    "provider_named",
    "result_item",
    "result_messages",
    "tools_for",
]

_SHAPES: MappingProxyType[Provider, Shape] = MappingProxyType(
    {
        Provider.ANTHROPIC: AnthropicShape(),
        Provider.OPENAI_CHAT: OpenAIChatShape(),
        Provider.OPENAI_RESPONSES: OpenAIResponsesShape(),
        Provider.GEMINI: GeminiShape(),
        Provider.GEMINI_INTERACTIONS: GeminiInteractionsShape(),
    }
)


_KINDS = frozenset(kind.value for kind in CallKind)


def provider_named(name: str) -> Provider:
    """Return the provider of that name.

    Raises:
        ConfigError: there is none; the message names those there are, and the nearest.
    """
    try:
        return Provider(name)
    except ValueError:
        near = difflib.get_close_matches(str(name), list(Provider), n=1)
        hint = f" (did you mean {str(near[0])!r}?)" if near else ""
        raise ConfigError("provider", name, f"one of {', '.join(Provider)}{hint}") from None


def _checked_kind(entry: WireCall | WireResult | ToolSpec) -> None:
    if entry.kind not in _KINDS:
        raise ConfigError(f"kind of {entry.name!r}", entry.kind, f"one of {', '.join(CallKind)}")


def tools_for(provider: str, specs: Sequence[ToolSpec], *, strict: bool = False) -> list[Item]:
    """Build the request's `tools` for these tools, in this order.

    Args:
        provider: a `Provider` or its name.
        specs: the tools.
        strict: ask for OpenAI's strict mode for those tools whose schema satisfies it as it is; the others stay as they are.

    Raises:
        ConfigError: the provider is unknown, or would refuse a tool's name, schema or kind.
    """
    shape = _SHAPES[provider_named(provider)]
    for spec in specs:
        _checked_kind(spec)
    return shape.tools(specs, strict=strict)


def call_from_item(provider: str, item: object) -> WireCall:
    """Read one call from a provider's item: a dict, or an SDK object with `model_dump` or `to_dict`.

    Raises:
        ConfigError: the provider is unknown.
        MalformedItem: the item is no call of that provider, or lacks what a call must have; says what and where.
    """
    name = provider_named(provider)
    mapping = opened(item)
    if mapping is None:
        raise MalformedItem(name, "call", f"is {described(item)}; expected a dict or an object with model_dump()")
    return _SHAPES[name].call(mapping)


def calls_in(provider: str, response: object) -> list[WireCall]:
    """Read all calls of one whole response (or of its message, or its list of items) in model order.

    Left out: tools the provider runs itself, calls that the response already answers, and every call of a response that was cut
    off (token limit, refusal, failure): its last call may be half a call, and a call from a cut response is never run.

    Raises:
        ConfigError: the provider is unknown.
        MalformedItem: this is no response of that provider, or one of its calls is malformed.
    """
    return _SHAPES[provider_named(provider)].calls(response)


def call_item(provider: str, call: WireCall) -> Item:
    """Build the item of a call as it is sent back in a history; `call_from_item` of it gives the call again.

    Arguments that are invalid JSON are sent back in the form that the provider can take: `{"INVALID_JSON": text}` where it wants
    an object, `{}` on openai_chat, unchanged on openai_responses.

    Raises:
        ConfigError: unknown provider or kind, or no call id where the provider pairs by it.
    """
    _checked_kind(call)
    return _SHAPES[provider_named(provider)].call_item(call)


def result_item(provider: str, result: WireResult) -> Item:
    """Build the one item that answers one call. Media it cannot hold are replaced by a fixed placeholder.

    Raises:
        ConfigError: unknown provider or kind, or no call id where the provider pairs by it.
    """
    _checked_kind(result)
    return _SHAPES[provider_named(provider)].result_item(result)


def result_messages(provider: str, results: Sequence[WireResult]) -> list[Item]:
    """Build what is appended to a conversation to answer the calls of one response.

    Results keep the order given, which must be that of the calls. Media that a result cannot hold follow after the last result
    where the provider takes them there, numbered.

    Raises:
        ConfigError: unknown provider or kind, or no call id where the provider pairs by it.
    """
    for result in results:
        _checked_kind(result)
    return _SHAPES[provider_named(provider)].result_messages(results)
