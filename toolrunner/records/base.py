"""What every record has. Frozen; no state."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar


def now() -> datetime:
    """Wall time in UTC, for display; order is `seq`, durations come from monotonic clocks."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRecord:
    """What every record has. `run_id` is the call it is about."""

    run_id: str
    at: datetime = field(default_factory=now)
    seq: int = 0
    v: int = 1
    transient: ClassVar[bool] = False
