"""ScriptedApprover: an approver whose answers, and their moments, are the test's.

State: the answers that are left and the questions it was asked; each question takes the next answer.
"""

from collections.abc import Iterable
from typing import final

import anyio

from toolrunner.abort import AbortSignal
from toolrunner.policy import ApprovalRequest, Decision
from toolrunner.testing.gates import Gate

ScriptedAnswer = Decision | None | BaseException
"""A decision; None (somebody else will say, through `Batch.decide`); or what the approver raises."""


@final
class ScriptedApprover:
    """Gives `answers` in turn, then `Decision.allow()` for ever.

    With a `gate` it answers each question only when that is open. `ignores_cancel` makes it wait there although its question was
    settled otherwise (an abort, a time-out), so that its answer comes too late and must count for nothing.
    """

    def __init__(
        self,
        answers: Iterable[ScriptedAnswer] = (),
        *,
        gate: Gate | None = None,
        ignores_cancel: bool = False,
        concurrent: bool = False,
    ) -> None:
        self._answers = list(answers)
        self._gate = gate
        self._ignores_cancel = ignores_cancel
        self.concurrent = concurrent
        self.asked: list[ApprovalRequest] = []
        """The questions so far."""

    async def decide(self, request: ApprovalRequest, signal: AbortSignal) -> Decision | None:  # noqa: ARG002 - the protocol's
        """Answer one question."""
        self.asked.append(request)
        answer = self._answers.pop(0) if self._answers else Decision.allow()
        if self._gate is not None:
            with anyio.CancelScope(shield=self._ignores_cancel):
                await self._wait(self._gate)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def _wait(self, gate: Gate) -> None:
        while True:
            try:
                await gate.wait()
            except anyio.get_cancelled_exc_class():  # asyncio's native cancel goes through the shield
                if not self._ignores_cancel:
                    raise
            else:
                return
