"""Record, the union of them all, and the two who take them: Journal and Observer. No state."""

from collections.abc import Awaitable
from typing import Annotated, Protocol

from pydantic import Field

from toolrunner.records.calls import (
    CallAnswered,
    CallAsked,
    CallDecided,
    CallDispatched,
    CallEnded,
    CallModified,
    CallReconciled,
    CallRecorded,
    CallSettled,
    CallStopDelivered,
    CallStopRequested,
)
from toolrunner.records.effects import (
    EffectApplied,
    EffectNotApplied,
    EffectPlanned,
    EffectUndone,
    EffectUnknown,
)
from toolrunner.records.inbox import (
    InboxCancelled,
    InboxClaimed,
    InboxQueued,
)
from toolrunner.records.jobs import (
    JobEnded,
    JobStarted,
)
from toolrunner.records.live import (
    Output,
    Progress,
    StillRunningReport,
)
from toolrunner.records.turns import (
    AssistantAttempt,
    AssistantMessage,
    HistoryCompacted,
    RequestSent,
    StepEnded,
    StepStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)

Record = Annotated[
    CallRecorded
    | CallDecided
    | CallAsked
    | CallAnswered
    | CallModified
    | CallDispatched
    | CallStopRequested
    | CallStopDelivered
    | CallEnded
    | CallSettled
    | CallReconciled
    | EffectPlanned
    | EffectApplied
    | EffectUnknown
    | EffectNotApplied
    | EffectUndone
    | JobStarted
    | JobEnded
    | TurnStarted
    | UserMessage
    | StepStarted
    | RequestSent
    | AssistantMessage
    | AssistantAttempt
    | StepEnded
    | TurnEnded
    | HistoryCompacted
    | InboxQueued
    | InboxClaimed
    | InboxCancelled
    | Output
    | Progress
    | StillRunningReport,
    Field(discriminator="type"),
]


class Journal(Protocol):
    """Where records are kept. One writer: the runner that owns it."""

    def append(self, *records: Record) -> Awaitable[None] | None:
        """Take records in this order, as one commit. Sync, never blocks.

        Returns None when they are as durable as this journal gets, else something to await until they are; what need not be
        waited for is simply not awaited, and rides along. Raises nothing: a journal that fails says so through `error`. Whoever
        waits for records that it could not keep is told by `JournalError`, so that the act they were to precede is not done.
        """
        ...

    @property
    def error(self) -> str | None:
        """Why nothing more can be written, or None. While it is set, nothing is dispatched."""
        ...

    async def aclose(self) -> None:
        """Write what is pending and let go."""
        ...


class Observer(Protocol):
    """Sees every record, transient ones too, in order. Must not block; what it raises is logged and dropped."""

    def __call__(self, record: Record, /) -> object: ...
