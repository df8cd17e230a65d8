"""One launch as the host sees it: the plan, and who gets the output. Frozen; made by the supervisor."""

import secrets
from dataclasses import dataclass, field
from typing import final

from toolrunner.process.keeping.cgroup import Cgroup
from toolrunner.process.plan import LaunchPlan
from toolrunner.process.prepared import Observer, Sink


@final
@dataclass(frozen=True, slots=True)
class Request:
    """`dirfd` is the open working directory, or None to open the plan's. `cgroup` is the call's own, `enforced` what it gives.

    `mark` is in the environment of all processes of the call.
    """

    plan: LaunchPlan
    dirfd: int | None = None
    on_output: Observer | None = None
    sink: Sink | None = None
    cgroup: Cgroup | None = None
    enforced: tuple[str, ...] = ()
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
