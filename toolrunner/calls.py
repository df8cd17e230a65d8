"""ToolCall: what a model or a program asks for, before anything is known about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from toolrunner.errors import ConfigError
from toolrunner.facts.quick import quick
from toolrunner.wire import WireCall, call_from_item, calls_in


@quick
@dataclass(frozen=True, slots=True)
class ToolCall:
    """One request to run a tool.

    `arguments` is a mapping, or the raw JSON text of one as a provider sent it. `call_id` is the provider's and is echoed;
    `kind` and `provider_meta` say which answer item the provider expects. `timeout` (seconds, from started) overrides the tool's.
    With an `idempotency_key` the same call is started once per session; without one two equal calls are two calls.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    call_id: str | None = None
    kind: str = "function"
    idempotency_key: str | None = None
    timeout: float | None = None
    meta: Mapping[str, JsonValue] = field(default_factory=dict)
    provider_meta: Mapping[str, JsonValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse names that are none: calls are told apart and found again by them. Raises `ConfigError`."""
        for what, value in (("call_id", self.call_id), ("idempotency_key", self.idempotency_key)):
            if value is not None and not isinstance(value, str):
                raise ConfigError(what, value, "a string, or None")

    def with_frozen(self, arguments: dict[str, Any], meta: dict[str, Any], provider_meta: dict[str, Any]) -> "ToolCall":
        """The same call with these in place of its own. Done for each call, and `replace` takes three times as long."""
        own = (self.call_id, self.kind, self.idempotency_key, self.timeout)
        return ToolCall(self.name, arguments, *own, meta, provider_meta)

    @classmethod
    def from_provider(cls, provider: str, item: object) -> "ToolCall":
        """The call in one provider item (a dict, or an SDK object that can dump itself as one)."""
        return cls._from_wire(call_from_item(provider, item))

    @classmethod
    def from_response(cls, provider: str, response: object) -> "list[ToolCall]":
        """All calls of one whole response (or its message, or its items) that are ours to run, in the model's order.

        A response that was cut off gives none: a half call must not be run.
        """
        return [cls._from_wire(call) for call in calls_in(provider, response)]

    @classmethod
    def _from_wire(cls, call: WireCall) -> "ToolCall":
        return cls(call.name, call.arguments, call_id=call.call_id, kind=call.kind, provider_meta=call.provider_meta)
