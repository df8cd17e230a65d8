"""The values that cross the provider edge: tool lists out, calls in, results out.

State: none; all are frozen. `provider_meta` is opaque to everyone but the shape of the provider it came from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from toolrunner.errors import ToolrunnerError
from toolrunner.facts import Content

Item = dict[str, Any]
"""One JSON object of a provider's API, as plain dicts, lists, strings, numbers, booleans and None."""


class Provider(StrEnum):
    """The API a conversation is held over. It names a wire format, not a vendor: many vendors speak `openai_chat`."""

    ANTHROPIC = "anthropic"
    """Messages API."""
    OPENAI_CHAT = "openai_chat"
    """Chat Completions."""
    OPENAI_RESPONSES = "openai_responses"
    """Responses."""
    GEMINI = "gemini"
    """generateContent."""
    GEMINI_INTERACTIONS = "gemini_interactions"
    """Interactions, in the form with `steps` (API revision 2026-05-20 and later)."""


class CallKind(StrEnum):
    """What form of call the model made, which decides the form of the answer. Only `openai_responses` answers all five."""

    FUNCTION = "function"
    """Named, with a JSON object of arguments."""
    CUSTOM = "custom"
    """Named, with free text; its arguments here are `{"input": text}`."""
    SHELL = "shell"
    """OpenAI's shell tool; its arguments here are the call's `action`: commands, timeout_ms, max_output_length."""
    LOCAL_SHELL = "local_shell"
    """The older local shell tool; its arguments here are the call's `action`: command, env, working_directory, timeout_ms."""
    APPLY_PATCH = "apply_patch"
    """OpenAI's patch tool; its arguments here are the call's `operation`: type, path, diff."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as a model is told about it."""

    name: str
    description: str
    parameters: Item
    """JSON Schema of an object. Annotations are not part of it: they are for the host, and no provider takes them."""
    kind: str = CallKind.FUNCTION
    """Other kinds exist only where the provider has such a tool; elsewhere they are refused, not disguised."""


@dataclass(frozen=True, slots=True)
class WireCall:
    """One call as the model made it."""

    name: str
    arguments: Mapping[str, Any] | str
    """An object, or the model's own JSON text, unparsed: it may be invalid, which is for row 2 of a call's life to say."""
    call_id: str | None = None
    """The provider's. None only from Gemini, which pairs by name and order then."""
    kind: str = CallKind.FUNCTION
    provider_meta: Mapping[str, Any] = field(default_factory=dict)
    """All else the provider sent with the call, under its own names: item id, caller, toolset_name, namespace, signatures."""


@dataclass(frozen=True, slots=True)
class WireResult:
    """One result as the model is to be told it. `name`, `kind`, `call_id` and `provider_meta` are the call's, unchanged."""

    call_id: str | None
    name: str
    kind: str = CallKind.FUNCTION
    provider_meta: Mapping[str, Any] = field(default_factory=dict)
    content: tuple[Content, ...] = ()
    is_error: bool = False
    """Has a field of its own on anthropic, gemini, gemini_interactions and for patches; elsewhere only the text can say it."""
    exit_code: int | None = None
    """For kind `shell`, whose answer needs one: the command's, 128 + n after signal n; None = 1 for an error, else 0."""
    timed_out: bool = False
    """For kind `shell`: answered with the outcome `timeout` and no exit code."""


class MalformedItem(ToolrunnerError, ValueError):
    """A provider's item does not have the form its API promises.

    Arguments that are bad JSON are not this: such a call is read, and gets a result that says so.
    """

    def __init__(self, provider: str, where: str, problem: str) -> None:
        super().__init__(f"{provider} {where}: {problem}")
        self.provider = provider
        self.where = where
        self.problem = problem


class Shape(Protocol):
    """One provider's wire format. Every method is a pure function of its arguments; nothing handed in is kept or changed."""

    def tools(self, specs: Sequence[ToolSpec], *, strict: bool) -> list[Item]:
        """Build the request's `tools`."""
        ...

    def call(self, item: Mapping[str, Any]) -> WireCall:
        """Read one call. Raises MalformedItem."""
        ...

    def calls(self, response: object) -> list[WireCall]:
        """Read all calls of one response that are ours to run, in model order. Raises MalformedItem."""
        ...

    def call_item(self, call: WireCall) -> Item:
        """Build the call as it stands in a history that is sent back; the inverse of `call`."""
        ...

    def result_item(self, result: WireResult) -> Item:
        """Build the one item that answers one call. Raises ConfigError when the call id it needs is missing."""
        ...

    def result_messages(self, results: Sequence[WireResult]) -> list[Item]:
        """Build what is appended to the conversation to answer one response's calls, results in the order given."""
        ...
