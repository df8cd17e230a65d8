"""CLOCK_MONOTONIC, which host and keepers share, turned into dates. No state."""

import time
from datetime import UTC, datetime, timedelta


def date_of(monotonic: float | None) -> datetime | None:
    """The date of a monotonic time (seconds), as the wall clock stands now."""
    if monotonic is None:
        return None
    return datetime.now(UTC) - timedelta(seconds=time.monotonic() - monotonic)
