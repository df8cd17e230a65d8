"""What exactly an approval covers."""

import hashlib
import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class GrantKey:
    """The call an approval was given for, as plain strings. Built by prepare; policy only compares digests.

    Contents of files that a command reads are not covered, and the prompt says so.
    """

    tool: str
    registration: str
    arguments: str
    cwd: str = ""
    env: tuple[tuple[str, str], ...] = ()
    argv0: str = ""
    profile: str = ""

    def digest(self) -> str:
        """SHA-256 over all fields in a fixed order; equal digests mean the grant fits this very call."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()
