"""Approvals of calls that a turn makes: somebody is asked only while a turn is open. State: the agent, once it is known.

A runner is made before its agent, so its approver learns of the agent later: `TurnApprover(ask)` goes to the runner, and
`approver.bind(agent)` follows. The turn's signal is set before any question is taken back: a body sees the stop, not a refusal.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, final

from toolrunner.abort import AbortSignal
from toolrunner.errors import ToolrunnerError
from toolrunner.policy import ApprovalRequest, Decision

__all__ = ["NoOpenTurn", "TurnApprover"]

NO_AGENT = "No agent is there to be asked for."


class NoOpenTurn(ToolrunnerError):
    """A call asks for an approval while no turn is open, so there is nobody whose work it could be part of."""

    def __init__(self, tool: str) -> None:
        super().__init__(f"{tool!r} asks for an approval outside a turn; nobody is asked")


class HasTurns(Protocol):
    """An agent, as far as this goes."""

    @property
    def turn_id(self) -> str | None:
        """The turn that is open."""
        ...


@final
class TurnApprover:
    """An `Approver` for a runner whose calls are an agent's. `ask` is what asks the person."""

    def __init__(self, ask: Callable[[ApprovalRequest, AbortSignal], Awaitable[Decision | None]]) -> None:
        self._ask = ask
        self._agent: HasTurns | None = None

    def bind(self, agent: HasTurns) -> None:
        """From here on this agent's turns are asked for."""
        self._agent = agent

    async def decide(self, request: ApprovalRequest, signal: AbortSignal) -> Decision | None:
        """Without an agent it denies and asks nobody. Raises `NoOpenTurn`, which a runner takes for nobody there."""
        if self._agent is None:
            return Decision.deny(NO_AGENT)
        if self._agent.turn_id is None:
            raise NoOpenTurn(request.tool)
        return await self._ask(request, signal)
