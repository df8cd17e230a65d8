"""What a turn works with, put together once by the agent; and the little that an agent knows of a runner. No state."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, final

from toolrunner.abort import AbortSignal
from toolrunner.agent.hooks import Hooks
from toolrunner.agent.limits import Limits, Retries
from toolrunner.agent.model import Model
from toolrunner.agent.phases import Phases
from toolrunner.agent.session import Session
from toolrunner.agent.streaming import Shows
from toolrunner.calls import ToolCall
from toolrunner.records import Observer
from toolrunner.results import BatchResult

__all__ = ["Calls", "Parts"]


class Calls(Protocol):
    """A runner, as an agent sees it. Its journal must be the session's."""

    async def run_batch(self, calls: Iterable[ToolCall], *, signal: AbortSignal | None = None) -> BatchResult:
        """Run calls and wait for all results, in this order. Never abandons one that started."""
        ...

    def tools_for(self, provider: str) -> list[dict[str, Any]]:
        """The tool list to send."""
        ...

    def on_record(self, observer: Observer) -> Callable[[], None]:
        """Hear of every record, in the order in which the journal has them; returns the way to stop."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """One agent's."""

    model: Model
    runner: Calls
    session: Session
    phases: Phases
    shows: Shows
    system: str
    hooks: Hooks
    limits: Limits
    retries: Retries
