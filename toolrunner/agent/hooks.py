"""Where a host may take part in a turn. Each hook gets the turn's own signal, and is cancelled when it is aborted. No state."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

from toolrunner.abort import AbortSignal
from toolrunner.agent.model import ModelError

__all__ = ["Hooks", "StepView"]


@final
@dataclass(frozen=True, slots=True)
class StepView:
    """Where a turn is. `step` counts from 1, and is the one to come before it has begun."""

    turn_id: str
    step: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """All optional; what one raises ends the turn with an error."""

    system: Callable[[StepView, AbortSignal], Awaitable[str]] | None = None
    """Makes the system prompt, once in each turn, instead of the agent's own."""
    pre_step: Callable[[StepView, AbortSignal], Awaitable[object]] | None = None
    """Before each step; nothing of it is on record yet."""
    request: Callable[[StepView, AbortSignal], Awaitable[Mapping[str, Any] | None]] | None = None
    """In the step, before anything that was said is admitted; returns more parameters for the provider."""
    request_error: Callable[[StepView, ModelError, AbortSignal], Awaitable[bool | None]] | None = None
    """A request failed, and its attempt is on record. True: ask again; False: do not; None: as the error says."""
    turn_stopping: Callable[[StepView, AbortSignal], Awaitable[object]] | None = None
    """The model has nothing more to do. What is steered in now is another step of this turn."""
