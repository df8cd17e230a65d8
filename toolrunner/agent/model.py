"""What an agent needs of a model: a stream of chunks for a request, errors that say whether to ask again. Frozen; no state."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, final

from toolrunner.errors import ToolrunnerError
from toolrunner.history.chunks import Chunk
from toolrunner.wire import Item

__all__ = ["Model", "ModelError", "ModelRequest", "Prices", "Spent"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request. `messages` are in the shape of the model's provider; they are the history and are sent as they are."""

    system: str
    messages: Sequence[Item]
    tools: Sequence[Item]
    options: Mapping[str, Any] = field(default_factory=dict)
    """More of the provider's own parameters, for this request; the system prompt, history and tools are none of them."""


class ModelError(ToolrunnerError):
    """A request failed at the provider, or on the way. `retryable`: the same request may go through later.

    `retry_after`: seconds that the provider wants to be left alone, None if it did not say.
    """

    def __init__(self, text: str, *, retryable: bool, retry_after: float | None = None, status: int | None = None) -> None:
        super().__init__(text)
        self.retryable = retryable
        self.retry_after = retry_after
        self.status = status


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a million tokens cost, in any one currency."""

    input: float
    output: float
    cache_read: float | None = None
    """None: as `input`."""
    cache_write: float | None = None


@final
@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens, as the provider counted. `input` leaves out what was read from or written to its cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def tokens(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )

    def cost(self, prices: Prices) -> float:
        """What it costs, in the currency of the prices."""
        read = prices.cache_read if prices.cache_read is not None else prices.input
        write = prices.cache_write if prices.cache_write is not None else prices.input
        total = self.input * prices.input + self.output * prices.output + self.cache_read * read + self.cache_write * write
        return total / 1_000_000

    @staticmethod
    def of(usage: Mapping[str, Any]) -> "Spent":
        """What a `Usage` says under the four names that every adapter uses; whatever else it says is the provider's own."""
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        return Spent(*(value if isinstance(value := usage.get(name), int) else 0 for name in names))


class Model(Protocol):
    """One model of one provider."""

    @property
    def provider(self) -> str:
        """The shape that `ModelRequest.messages` and `tools` have: a `toolrunner.wire.Provider`."""
        ...

    @property
    def name(self) -> str:
        """Who is asked; what it sealed (thoughts, signatures) is sent to nobody else."""
        ...

    @property
    def prices(self) -> Prices | None:
        """What its tokens cost; None: nobody said, and a limit of costs is refused."""
        ...

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[Chunk]]:
        """Send it. Leaving the block, for whatever reason, closes the response: the provider stops, and stops charging.

        Raises:
            ModelError: at the beginning or later. Anything else that is raised is a bug of the adapter.
        """
        ...
