"""Batch: a batch under way, for hosts that want its events, its results one by one, or to answer its approvals."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator
from typing import final

from toolrunner.abort import abort_mode
from toolrunner.facts import AbortMode, AbortReason, Source
from toolrunner.policy import ApprovalDesk, ApprovalRequest, Decision
from toolrunner.records import Record
from toolrunner.results import BatchResult, ToolResult
from toolrunner.runner.events import EventBuffer
from toolrunner.runner.waiting import OnHostCancel, wait_as_host
from toolrunner.scheduler import BatchRun


@final
class Batch:
    """Made by `Runner.start_batch`. The calls run whether or not anybody waits for them here."""

    def __init__(
        self,
        run: BatchRun,
        events: EventBuffer,
        approvals: ApprovalDesk,
        on_host_cancel: OnHostCancel,
        host_cancel_wait: float,
    ) -> None:
        self._run = run
        self._events = events
        self._approvals = approvals
        self._on_host_cancel = on_host_cancel
        self._host_cancel_wait = host_cancel_wait

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The calls' run ids, in model order."""
        return tuple(state.run_id for state in self._run.states)

    def abort(self, text: str = "user", *, mode: AbortMode | str = AbortMode.IMMEDIATE) -> bool:
        """Stop this batch only. True if this was the first request. Raises `ConfigError` for a mode that does not exist."""
        return self._run.abort(AbortReason(Source.CALLER, text), abort_mode(mode))

    async def results(self) -> BatchResult:
        """Wait for all results. A cancelled wait means what `on_host_cancel` says."""
        await wait_as_host(self._run.done, self._on_host_cancel, self._abort_as_host, self._host_cancel_wait)
        if self._run.failure is not None:
            raise self._run.failure
        return self._run.result()

    def __await__(self) -> Generator[object, None, BatchResult]:
        return self.results().__await__()

    def events(self) -> AsyncIterator[Record]:
        """The batch's records in order, live, until its last call has settled. For one reader, who may leave at any time."""
        return self._events

    async def stream(self) -> AsyncGenerator[ToolResult]:
        """Results in model order, each as soon as it is committed."""
        for state in self._run.states:
            await wait_as_host(state.settled, self._on_host_cancel, self._abort_as_host, self._host_cancel_wait)
            assert state.result is not None
            yield state.result
        await self.results()

    @property
    def pending_approvals(self) -> tuple[ApprovalRequest, ...]:
        """Questions of this batch that wait for an answer."""
        own = set(self.run_ids)
        return tuple(request for request in self._approvals.pending if request.run_id in own)

    def decide(self, approval_id: str, decision: Decision) -> bool:
        """Answer a pending question. True only for its first answer; a late one starts nothing."""
        return self._approvals.decide(approval_id, decision)

    def _abort_as_host(self) -> None:
        self._run.abort(AbortReason(Source.HOST, "the task that awaited the batch was cancelled"))
