"""What is asked when a call needs an approval, and what can be answered. Frozen values; no state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol, final

from pydantic import JsonValue

from toolrunner.abort import AbortSignal
from toolrunner.errors import ConfigError
from toolrunner.facts import Annotations
from toolrunner.records import now

GrantScope = Literal["once", "session"]
"""How long an approval holds: for this one call, or for equal calls of the session until it expires."""

_SCOPES = ("once", "session")


class DecisionKind(StrEnum):
    """What an approver may say. `stop` denies this call and aborts its batch."""

    ALLOW = "allow"
    DENY = "deny"
    STOP = "stop"


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """One answer; made with `allow`, `deny` or `stop`. Anything else than these three is refused (ConfigError), never a grant.

    `arguments` replace those of the call; they are journalled and judged again. `feedback` is for the model.
    """

    kind: DecisionKind
    for_: GrantScope = "once"
    arguments: Mapping[str, Any] | None = None
    feedback: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, DecisionKind):
            raise ConfigError("a decision's kind", self.kind, "Decision.allow(), .deny() or .stop()")
        if self.for_ not in _SCOPES:
            raise ConfigError("Decision for_", self.for_, "'once' or 'session'")
        if self.arguments is not None and not isinstance(self.arguments, Mapping):
            raise ConfigError("Decision arguments", self.arguments, "a mapping of all arguments, or None to keep them")
        if not isinstance(self.feedback, str):
            raise ConfigError("Decision feedback", self.feedback, "a text")

    @classmethod
    def allow(cls, for_: GrantScope = "once", arguments: Mapping[str, Any] | None = None) -> "Decision":
        """Run it, once or (`session`) also whenever exactly this call comes again; with other `arguments` if given."""
        return cls(DecisionKind.ALLOW, for_=for_, arguments=arguments)

    @classmethod
    def deny(cls, feedback: str = "") -> "Decision":
        """Do not run it; `feedback` tells the model why, or what to do instead."""
        return cls(DecisionKind.DENY, feedback=feedback)

    @classmethod
    def stop(cls, feedback: str = "") -> "Decision":
        """Do not run it, and abort the batch it belongs to."""
        return cls(DecisionKind.STOP, feedback=feedback)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """One question. `digest` is that of the call's GrantKey: the answer covers exactly this call.

    `text` is why it is asked, and what the approval does not cover. `approval_id` is given by the desk, anew for each ask.
    """

    run_id: str
    tool: str
    arguments: JsonValue
    digest: str
    call_id: str | None = None
    text: str = ""
    annotations: Annotations = field(default_factory=Annotations)
    asked_at: datetime = field(default_factory=now)
    approval_id: str = ""


class Approver(Protocol):
    """Somebody who can be asked. Set an attribute `concurrent = True` to be asked several questions at once."""

    async def decide(self, request: ApprovalRequest, signal: AbortSignal) -> Decision | None:
        """The answer, or None: it is asked elsewhere and will come through the desk. `signal` is the caller's own.

        Cancelled once when the question is settled without it. What it raises counts as nobody there, never as a grant.
        """
        ...
