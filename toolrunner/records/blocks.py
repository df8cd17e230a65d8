"""What a model's message consists of, in no provider's words. Frozen; no state.

`closed`: the provider said that the block is complete; text and thoughts that were cut off are kept open, with what had arrived.
Whatever a provider wants back unchanged (signatures, encrypted thoughts, ids of items) is kept and never looked into.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, JsonValue


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text. `signature` is Gemini's, which may sign any part; `item_id` that of Responses."""

    text: str
    closed: bool = True
    item_id: str | None = None
    signature: str | None = None
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class ReasoningBlock:
    """A thought: its text or summary, and the sealed form that the provider takes back. A seal counts only on a closed block."""

    text: str = ""
    closed: bool = True
    signature: str | None = None
    encrypted: str | None = None
    item_id: str | None = None
    provider_meta: Mapping[str, JsonValue] = field(default_factory=dict)
    type: Literal["reasoning"] = "reasoning"


@dataclass(frozen=True, slots=True)
class RedactedBlock:
    """A thought that only its provider can read."""

    data: str
    closed: bool = True
    type: Literal["redacted"] = "redacted"


@dataclass(frozen=True, slots=True)
class CallBlock:
    """A call. `arguments` is the model's own text, byte for byte, whether or not it is JSON."""

    name: str
    arguments: str
    call_id: str | None = None
    kind: str = "function"
    closed: bool = True
    provider_meta: Mapping[str, JsonValue] = field(default_factory=dict)
    type: Literal["call"] = "call"


@dataclass(frozen=True, slots=True)
class UnknownBlock:
    """A provider's own object that nobody here knows (tools it runs itself, kinds of later days): sent back as it is."""

    item: Mapping[str, JsonValue]
    closed: bool = True
    type: Literal["unknown"] = "unknown"


Block = Annotated[TextBlock | ReasoningBlock | RedactedBlock | CallBlock | UnknownBlock, Field(discriminator="type")]
