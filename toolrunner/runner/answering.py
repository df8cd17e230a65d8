"""The half of a runner that questions are about: what waits for an approval, and the answer to it.

State: the parts of a runner that was entered, and why it takes no calls. The front door changes both.
"""

from collections.abc import Iterable

from toolrunner.pipeline.services import Services
from toolrunner.policy import ApprovalRequest, Decision
from toolrunner.records import Journal
from toolrunner.runner.lasting import Lasting
from toolrunner.runner.registering import Registering
from toolrunner.tools import Tools


class Answering(Registering):
    """See `Runner`, which is the one class of this kind."""

    def __init__(self, tools: Iterable[Tools], journal: Journal) -> None:
        super().__init__(tools, journal)
        self._services: Services | None = None
        self._lasting = Lasting(None)
        self._closed: str | None = "it was not entered; use `async with Runner(...) as runner`"

    @property
    def pending_approvals(self) -> tuple[ApprovalRequest, ...]:
        """Questions that wait for an answer, those first that were asked elsewhere before a restart."""
        return (*self._lasting.pending, *self._services.approvals.pending) if self._services is not None else ()

    def decide(self, approval_id: str, decision: Decision) -> bool:
        """Answer a pending question. True only for its first answer.

        One that was asked before a restart lets its call go on in this runner under its own run id: with the arguments on record,
        the deps of the runner, judged anew by policy and hooks, and only if the approval fits the tool as it is now. `wait` gives
        its result.
        """
        if self._services is None or self._closed is not None:
            return False
        return self._lasting.decide(approval_id, decision) or self._services.approvals.decide(approval_id, decision)
