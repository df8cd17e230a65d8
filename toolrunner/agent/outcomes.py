"""What is known of a turn once it is over: its result, and the three layers of feedback to whoever stopped it. Frozen values.

Layer 1: the request was made (the handle exists). Layer 2: everything that was under way has ended (`settled`). Layer 3: what
outside may have changed (`outside`): a stop undoes nothing.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, final

from toolrunner.agent.inbox import Message
from toolrunner.facts import AbortReason, EffectState
from toolrunner.history.chunks import Stop
from toolrunner.results import Retry, ToolResult

__all__ = ["Outside", "StopHandle", "StopReport", "TurnResult", "outside_of"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """One turn. `dropped`: the message was taken back before any turn took it; `waiting`: the agent closed, and it still waits.

    `text` is what the model said last, also when it was stopped; `error` why the turn failed, `reason` why it was stopped.
    """

    turn_id: str = ""
    outcome: Literal["completed", "aborted", "error", "dropped", "waiting"]
    text: str = ""
    stop: Stop | None = None
    reason: AbortReason | None = None
    error: str = ""
    failure: BaseException | None = None
    """What was raised, where `error` tells of an exception."""
    steps: int = 0
    results: tuple[ToolResult, ...] = ()
    unadmitted: tuple[Message, ...] = ()
    """Messages that the turn had taken and that the model will never see: they are gone unless somebody sends them again."""

    @property
    def outside(self) -> tuple["Outside", ...]:
        """What its calls changed, or may have changed."""
        return outside_of(self.results)


@final
@dataclass(frozen=True, slots=True)
class Outside:
    """A call that may have changed something outside. `check`: what it did is not known well enough to go on without a look."""

    run_id: str
    name: str
    effects: EffectState
    check: bool
    text: str


def outside_of(results: tuple[ToolResult, ...]) -> tuple[Outside, ...]:
    """The calls that changed something, or of which nobody knows whether they did, or of which something still runs."""
    found = list[Outside]()
    for result in results:
        state = result.effects.state
        runs = bool(result.still_running)
        if not result.started or (state in (EffectState.NONE, EffectState.REVERTED) and not runs):
            continue
        check = runs or result.retry is Retry.CHECK_FIRST or state in (EffectState.UNKNOWN, EffectState.PARTIAL)
        found.append(Outside(result.run_id, result.name, state, check, result.summary()))
    return tuple(found)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StopReport:
    """Layers 2 and 3, once everything has ended. `turn` is None where no turn was open."""

    turn: TurnResult | None = None
    dropped: tuple[Message, ...] = ()
    outside: tuple[Outside, ...] = field(default=())


@final
class StopHandle:
    """What `cancel` gives. Waiting for it is free to whoever wants to; the stop goes on without."""

    def __init__(self, dropped: tuple[Message, ...], wait: Callable[[], Awaitable[TurnResult | None]]) -> None:
        self.dropped = dropped
        """Messages that were taken back before any turn took them; the caller's again."""
        self._wait = wait
        self._report: StopReport | None = None

    async def settled(self) -> StopReport:
        """Wait until what was under way has ended: every body, every process, the turn's last record."""
        if self._report is None:
            turn = await self._wait()
            outside = turn.outside if turn is not None else ()
            self._report = StopReport(turn=turn, dropped=self.dropped, outside=outside)
        return self._report

    @property
    def outside(self) -> tuple[Outside, ...] | None:
        """What may have changed outside; None until it has settled, because nobody can know before."""
        return self._report.outside if self._report is not None else None
