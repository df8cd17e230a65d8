"""What became of a call, in the order of its rows (DESIGN, One call's life). Frozen; no state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from toolrunner.facts import ProcessIdentity
from toolrunner.facts.quick import quick
from toolrunner.records.base import BaseRecord
from toolrunner.results import Code, Ended, Outcome, ToolResult


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecorded(BaseRecord):
    """Row 0: a call was accepted; from here on it gets exactly one result. All that it was made with, but for `deps`.

    `problem`: why its arguments could not be frozen. `timeout` in seconds; None also where what was given is none.
    """

    name: str
    arguments: JsonValue
    call_id: str | None = None
    parent_run_id: str | None = None
    idempotency_key: str | None = None
    problem: str | None = None
    kind: str = "function"
    timeout: float | None = None
    meta: Mapping[str, JsonValue] = field(default_factory=dict)
    provider_meta: Mapping[str, JsonValue] = field(default_factory=dict)
    type: Literal["call/recorded"] = "call/recorded"


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class CallDecided(BaseRecord):
    """Row 3: policy, a hook or a guard decided. `by` names the rule or hook; no policy at all is said here too."""

    decision: Literal["allow", "ask", "deny", "cancel"]
    by: str
    text: str = ""
    type: Literal["call/decided"] = "call/decided"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAsked(BaseRecord):
    """Row 4: somebody is asked. Paired with exactly one `CallAnswered` of the same `approval_id`.

    `expires`: until when an answer counts, in seconds of CLOCK_BOOTTIME of the boot it was asked in; None = nobody says.
    """

    approval_id: str
    text: str
    digest: str
    expires: float | None = None
    type: Literal["call/asked"] = "call/asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswered(BaseRecord):
    """Row 4: the answer, or why there will be none (`aborted`, `timeout`, `unavailable`).

    `expires`: until when its grant may be used, in seconds of CLOCK_BOOTTIME of the boot it was given in; None = nobody says.
    """

    approval_id: str
    answer: Literal["allow", "deny", "stop", "aborted", "timeout", "unavailable"]
    text: str = ""
    for_: Literal["once", "session"] = "once"
    expires: float | None = None
    type: Literal["call/answered"] = "call/answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallModified(BaseRecord):
    """Row 4: the approver allowed other arguments; these are what is judged, and executed, from here on."""

    arguments: JsonValue
    by: str
    type: Literal["call/modified"] = "call/modified"


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class CallDispatched(BaseRecord):
    """Row 8: durable before the moment of action. It says that the body may have started from here on, not that it did.

    `reconciles`: its tool declares `reconcile`, so as long as its effects are unknown the record of it must be kept.
    """

    name: str
    arguments: JsonValue
    attempt: int = 1
    process: ProcessIdentity | None = None
    reconciles: bool = False
    type: Literal["call/dispatched"] = "call/dispatched"


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class CallStopRequested(BaseRecord):
    """An abort or a deadline reached the call."""

    source: str
    reason: str
    phase: str
    type: Literal["call/stop_requested"] = "call/stop_requested"


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class CallStopDelivered(BaseRecord):
    """The running body was told: latch set and cancel delivered, or the first signal sent."""

    type: Literal["call/stop_delivered"] = "call/stop_delivered"


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded(BaseRecord):
    """Row 9: the body is over and nothing of it runs. Written at once, in completion order, whatever waits for model order."""

    outcome: Outcome
    code: Code | None
    ended: Ended | None
    started: bool
    value: JsonValue = None
    result: ToolResult | None = None
    type: Literal["call/ended"] = "call/ended"


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettled(BaseRecord):
    """Row 12: the result as it is published, after hooks."""

    result: ToolResult
    type: Literal["call/settled"] = "call/settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReconciled(BaseRecord):
    """Somebody looked what became of a call whose effects were unknown: its tool's `reconcile`, or the user.

    The last one counts. `as_` unknown says that the look did not tell; `note` is the user's own, or why the tool's look failed.
    """

    as_: Literal["completed", "none", "unknown"]
    by: Literal["tool", "user"]
    note: str = ""
    type: Literal["call/reconciled"] = "call/reconciled"
