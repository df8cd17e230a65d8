"""Limits of what an agent may spend, and how long it asks a failing provider again. Frozen; no state."""

import math
from dataclasses import dataclass
from typing import final

from toolrunner.agent.model import Prices, Spent
from toolrunner.errors import ConfigError

__all__ = ["DEFAULT_STEPS", "Limits", "Retries"]

DEFAULT_STEPS = 200
"""Requests of one turn, unless told otherwise: a model that goes in circles costs no more than that."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`max_steps` counts requests of one turn, `max_cost` and `max_tokens` what the whole session has used. None: no limit."""

    max_steps: int | None = DEFAULT_STEPS
    max_cost: float | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuse limits that are none. Raises `ConfigError`."""
        for what in ("max_steps", "max_tokens"):
            value = getattr(self, what)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise ConfigError(what, value, "a whole number, 1 or more, or None")
        cost = self.max_cost
        if cost is not None and (not isinstance(cost, int | float) or not math.isfinite(cost) or cost <= 0):
            raise ConfigError("max_cost", cost, "a finite number above 0, or None")

    def require_prices(self, prices: Prices | None) -> None:
        """A limit that nobody could keep is refused. Raises `ConfigError`."""
        if self.max_cost is not None and prices is None:
            raise ConfigError("max_cost", self.max_cost, "None where the model does not say what it costs (`prices`)")

    def reached(self, steps: int, spent: Spent, prices: Prices | None) -> str | None:
        """Which limit forbids another request after `steps` of this turn; None: none does."""
        if self.max_steps is not None and steps >= self.max_steps:
            return f"the limit of {self.max_steps} steps is reached"
        if self.max_tokens is not None and spent.tokens >= self.max_tokens:
            return f"the limit of {self.max_tokens} tokens is reached"
        if self.max_cost is not None and prices is not None and spent.cost(prices) >= self.max_cost:
            return f"the limit of costs, {self.max_cost:g}, is reached"
        return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often one request is made in all, and how long is waited in between, in seconds."""

    attempts: int = 4
    first_wait: float = 1.0
    longest_wait: float = 60.0
    """A provider that wants to be left alone for longer is not waited for: the turn ends, and its user decides."""

    def __post_init__(self) -> None:
        if not isinstance(self.attempts, int) or self.attempts < 1:
            raise ConfigError("attempts", self.attempts, "a whole number, 1 or more")
        for what in ("first_wait", "longest_wait"):
            value = getattr(self, what)
            if not math.isfinite(value) or value < 0:
                raise ConfigError(what, value, "a finite number of seconds, 0 or more")
