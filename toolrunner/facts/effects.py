"""What a call changed outside its own memory, and how anyone knows."""

from dataclasses import dataclass
from enum import StrEnum

from toolrunner.facts.quick import quick

AROUND = ("hook:", "wrapper:")
"""How owners begin that stand around the body. Any other owner is the run id of a child call, which counts as the body's own."""


class EffectState(StrEnum):
    """What became of a call's side effects as a whole."""

    NONE = "none"
    COMPLETED = "completed"
    PARTIAL = "partial"
    UNKNOWN = "unknown"
    REVERTED = "reverted"


class Evidence(StrEnum):
    """Why the state is believed. Only `reported` and `observed` let a text claim that a change was made."""

    NOT_STARTED = "not_started"
    DECLARED = "declared"
    REPORTED = "reported"
    OBSERVED = "observed"
    ASSUMED = "assumed"


class EffectStage(StrEnum):
    """How far one recorded effect got."""

    PLANNED = "planned"
    APPLIED = "applied"
    UNKNOWN = "unknown"
    NOT_APPLIED = "not_applied"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class EffectRecord:
    """One effect a body (or `owner`: a hook or wrapper, under its own name) declared around its act.

    `receipt` is whatever the other side gave as proof; `error` is kept when the act or its undo failed.
    """

    effect_id: str
    kind: str
    target: str
    stage: EffectStage
    receipt: str | None = None
    error: str | None = None
    owner: str | None = None

    @property
    def is_around(self) -> bool:
        """Whether a hook or wrapper made it: it is listed with the call and is no effect of the tool."""
        return (self.owner or "").startswith(AROUND)


class ChangeKind(StrEnum):
    """What a scan saw of one path."""

    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"


class Attribution(StrEnum):
    """Whether only this call could have made a change. `shared` proves nothing about this call."""

    EXCLUSIVE = "exclusive"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs between the scans before and after the call."""

    path: str
    kind: ChangeKind
    attribution: Attribution = Attribution.EXCLUSIVE


@quick
@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of one call. `changes` is None when nobody looked, empty when the scan saw no change.

    `complete` is True only if the list of records and changes is known to be all there is.
    """

    state: EffectState
    evidence: Evidence | None = None
    records: tuple[EffectRecord, ...] = ()
    changes: tuple[Change, ...] | None = None
    complete: bool = False
    detail: str | None = None
