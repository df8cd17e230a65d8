"""The one list of records: what the journal stores, what an observer receives, what events, logs and histories are folds of.

Records are facts in the order in which they became true. They carry no behaviour; `seq` is given by the journal that takes them
(dense, from 1), `at` is wall time for display only. Transient records (`output`, `progress`, `still_running`) are never waited
for and may be dropped with a count.
"""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal, Protocol

from pydantic import Field, JsonValue

from toolrunner.facts import EffectRecord, ProcessIdentity, StillRunning
from toolrunner.results import Code, Ended, Outcome, ToolResult


def now() -> datetime:
    """Wall time in UTC, for display; order is `seq`, durations come from monotonic clocks."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """What every record has. `run_id` is the call it is about."""

    run_id: str
    at: datetime = field(default_factory=now)
    seq: int = 0
    v: int = 1
    transient: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecorded(_Record):
    """Row 0: a call was accepted; from here on it gets exactly one result. `problem`: why its arguments could not be frozen."""

    name: str
    arguments: JsonValue
    call_id: str | None = None
    parent_run_id: str | None = None
    idempotency_key: str | None = None
    problem: str | None = None
    type: Literal["call/recorded"] = "call/recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDecided(_Record):
    """Row 3: policy, a hook or a guard decided. `by` names the rule or hook; no policy at all is said here too."""

    decision: Literal["allow", "ask", "deny", "cancel"]
    by: str
    text: str = ""
    type: Literal["call/decided"] = "call/decided"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAsked(_Record):
    """Row 4: somebody is asked. Paired with exactly one `CallAnswered` of the same `approval_id`."""

    approval_id: str
    text: str
    digest: str
    type: Literal["call/asked"] = "call/asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswered(_Record):
    """Row 4: the answer, or why there will be none (`aborted`, `timeout`, `unavailable`)."""

    approval_id: str
    answer: Literal["allow", "deny", "stop", "aborted", "timeout", "unavailable"]
    text: str = ""
    for_: Literal["once", "session"] = "once"
    type: Literal["call/answered"] = "call/answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallModified(_Record):
    """Row 4: the approver allowed other arguments; these are what is judged, and executed, from here on."""

    arguments: JsonValue
    by: str
    type: Literal["call/modified"] = "call/modified"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDispatched(_Record):
    """Row 8: durable before the moment of action. It says that the body may have started from here on, not that it did."""

    name: str
    arguments: JsonValue
    attempt: int = 1
    process: ProcessIdentity | None = None
    type: Literal["call/dispatched"] = "call/dispatched"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStopRequested(_Record):
    """An abort or a deadline reached the call."""

    source: str
    reason: str
    phase: str
    type: Literal["call/stop_requested"] = "call/stop_requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStopDelivered(_Record):
    """The running body was told: latch set and cancel delivered, or the first signal sent."""

    type: Literal["call/stop_delivered"] = "call/stop_delivered"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded(_Record):
    """Row 9: the body is over and nothing of it runs. Written at once, in completion order, whatever waits for model order."""

    outcome: Outcome
    code: Code | None
    ended: Ended | None
    started: bool
    value: JsonValue = None
    result: ToolResult | None = None
    type: Literal["call/ended"] = "call/ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettled(_Record):
    """Row 12: the result as it is published, after hooks."""

    result: ToolResult
    type: Literal["call/settled"] = "call/settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectPlanned(_Record):
    """Durable before the act."""

    effect: EffectRecord
    type: Literal["effect/planned"] = "effect/planned"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectApplied(_Record):
    """The act was done; `effect.receipt` is its proof."""

    effect: EffectRecord
    type: Literal["effect/applied"] = "effect/applied"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectUnknown(_Record):
    """The act was left by an exception or a cancel: it may have happened."""

    effect: EffectRecord
    type: Literal["effect/unknown"] = "effect/unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectNotApplied(_Record):
    """The body knows that the act did not happen."""

    effect: EffectRecord
    type: Literal["effect/not_applied"] = "effect/not_applied"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectUndone(_Record):
    """Its undo was confirmed."""

    effect: EffectRecord
    type: Literal["effect/undone"] = "effect/undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted(_Record):
    """A process that may outlive its call: about to be released as a job, or left by a command that has ended.

    `run_id` is the call it came from, or the job's own id. `process` waits at its gate; `running` was left.
    """

    job_id: str
    name: str
    process: ProcessIdentity | None = None
    running: tuple[StillRunning, ...] = ()
    type: Literal["job/started"] = "job/started"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded(_Record):
    """Nothing of the job is left but what `still_running` lists (None: nothing was found, and nothing proves it)."""

    job_id: str
    state: Literal["exited", "stopped", "timed_out", "refused", "lost"]
    started: bool = True
    exit_code: int | None = None
    signals: tuple[str, ...] = ()
    still_running: tuple[StillRunning, ...] | None = None
    type: Literal["job/ended"] = "job/ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(_Record):
    """A chunk of output, live. Dropped for slow observers, with a count in `dropped`."""

    stream: Literal["stdout", "stderr", "output"]
    text: str
    dropped: int = 0
    transient: ClassVar[bool] = True
    type: Literal["output"] = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(_Record):
    """How far a body says it is."""

    message: str = ""
    done: float | None = None
    total: float | None = None
    transient: ClassVar[bool] = True
    type: Literal["progress"] = "progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class StillRunningReport(_Record):
    """Something was told to stop and runs on; repeated while it lasts. `waited` in seconds since the request."""

    what: tuple[StillRunning, ...]
    waited: float
    transient: ClassVar[bool] = True
    type: Literal["still_running"] = "still_running"


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
    | EffectPlanned
    | EffectApplied
    | EffectUnknown
    | EffectNotApplied
    | EffectUndone
    | JobStarted
    | JobEnded
    | Output
    | Progress
    | StillRunningReport,
    Field(discriminator="type"),
]


class Journal(Protocol):
    """Where records are kept. One writer: the runner that owns it."""

    def append(self, *records: Record) -> Awaitable[None] | None:
        """Take records in this order, as one commit. Sync, never blocks.

        Returns None when they are as durable as this journal gets, else something to await until they are. What need not be
        waited for is simply not awaited. Raises nothing: a journal that fails says so through `error`.
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
