"""A tool that needs an approval, and an approver that answers as the test says.

State: what the bodies of the running test were given; conftest.py empties it at the start of each.
"""

from typing import Any

import anyio
from pipeline.bench import DENIED, check_never_started

from toolrunner import AbortSignal, Policy, ToolCall, ToolResult, tool
from toolrunner.policy import ApprovalRequest
from toolrunner.testing import Gate

entered: list[dict[str, Any]] = []
ASK = Policy.of(ask=["write"], allow=["read"])


@tool(destructive=True)
async def write(path: str, text: str = "") -> str:
    """Write a file."""
    entered.append({"path": path, "text": text})
    return f"wrote {path}"


WRITE = ToolCall("write", {"path": "a"}, call_id="c1")


class Approver:
    """Answers with what it was made with; a callable is called, an exception raised. With a gate it waits there first."""

    def __init__(self, *answers: Any, gate: Gate | None = None) -> None:
        self._answers = list(answers)
        self._gate = gate
        self.asked: list[ApprovalRequest] = []
        self.signals: list[AbortSignal] = []
        self.cancelled = 0

    async def decide(self, request: ApprovalRequest, signal: AbortSignal) -> Any:
        self.asked.append(request)
        self.signals.append(signal)
        if self._gate is not None:
            try:
                await self._gate.wait()
            except anyio.get_cancelled_exc_class():
                self.cancelled += 1
                raise
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer(request) if callable(answer) else answer


def check_denied(result: ToolResult, kind: str) -> None:
    check_never_started(result, DENIED)
    assert result.error is not None
    assert result.error.kind == kind
    assert (result.retry, entered) == ("no", [])
