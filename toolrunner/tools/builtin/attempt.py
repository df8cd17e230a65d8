"""A try at one change, told truthfully when it is refused: what was refused before it began is known to have changed nothing.

A body that raises may have been on its way to something it had not declared yet, so its effects are unknown. One that returns an
error, and has recorded that its act did not happen, has none. State of an Attempt: whether an effect was declared.
"""

from collections.abc import Awaitable, Callable
from typing import Any, final

from toolrunner.abort import AbortError
from toolrunner.effects import Undo
from toolrunner.errors import ToolError
from toolrunner.facts import Text
from toolrunner.results import Error
from toolrunner.tools.context import EffectScope, ToolContext
from toolrunner.tools.reply import Reply


@final
class Attempt:
    """One try: `kind` and `target` are what is recorded when it is refused."""

    def __init__(self, ctx: ToolContext[Any], kind: str, target: str) -> None:
        self.ctx = ctx
        self._kind, self._target = kind, target
        self._declared = False

    def effect(self, kind: str, target: str, undo: Undo | None = None) -> EffectScope:
        """Declare an effect, as `ToolContext.effect`."""
        self._declared = True
        return self.ctx.effect(kind, target, undo=undo)

    def run(self, act: Callable[[], Reply]) -> Reply:
        """What `act` says, or how it was refused."""
        try:
            return act()
        except (ToolError, AbortError) as error:
            refusal = self._refusal(error)
        if not self._declared:
            with self.effect(self._kind, self._target) as effect:
                effect.not_applied()
        return refusal

    async def wait(self, act: Callable[[], Awaitable[Reply]]) -> Reply:
        """The same for an async act."""
        try:
            return await act()
        except (ToolError, AbortError) as error:
            refusal = self._refusal(error)
        if not self._declared:
            async with self.effect(self._kind, self._target) as effect:
                effect.not_applied()
        return refusal

    def _refusal(self, error: ToolError | AbortError) -> Reply:
        if isinstance(error, ToolError):
            return Reply(error=Error(error.kind, error.message))
        # No error of the tool's: the runner tells who stopped it. Raised, it would leave open what it had been about to do.
        return Reply(content=[Text(f"It was stopped before it changed {self._target}.")])
