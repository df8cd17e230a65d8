"""What a tool declares about itself. Policy, scheduling, retry and effects read it; nothing checks that it is true."""

from dataclasses import dataclass
from enum import StrEnum


class Isolation(StrEnum):
    """Where a body runs. `process` is a supervised worker that can be killed."""

    NONE = "none"
    PROCESS = "process"


@dataclass(frozen=True, slots=True)
class Annotations:
    """A tool's declarations, named as MCP names its tool annotations. None = not declared (MCP's default then applies)."""

    read_only: bool = False
    destructive: bool | None = None
    idempotent: bool = False
    open_world: bool | None = None
