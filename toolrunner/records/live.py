"""What is shown while it happens and never kept: transient records. Frozen; no state."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from toolrunner.facts import StillRunning
from toolrunner.records.base import BaseRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(BaseRecord):
    """A chunk of output, live. Dropped for slow observers, with a count in `dropped`."""

    stream: Literal["stdout", "stderr", "output"]
    text: str
    dropped: int = 0
    transient: ClassVar[bool] = True
    type: Literal["output"] = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(BaseRecord):
    """How far a body says it is."""

    message: str = ""
    done: float | None = None
    total: float | None = None
    transient: ClassVar[bool] = True
    type: Literal["progress"] = "progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class StillRunningReport(BaseRecord):
    """Something was told to stop and runs on; repeated while it lasts. `waited` in seconds since the request."""

    what: tuple[StillRunning, ...]
    waited: float
    transient: ClassVar[bool] = True
    type: Literal["still_running"] = "still_running"
