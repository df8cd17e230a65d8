"""Which approvals still hold, and for exactly which call.

State: the session grants of one runner, by digest, each with its expiry; changed by `Grants.allow` and `revoke`, on the loop.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import final

from toolrunner.errors import ConfigError
from toolrunner.facts import GrantKey
from toolrunner.policy.decisions import GrantScope
from toolrunner.policy.remembered import Kept


@final
@dataclass(frozen=True, slots=True)
class Grant:
    """One approval as it was given: for the call with this digest, until `expires_at` on the clock of its `Grants`."""

    digest: str
    expires_at: float
    for_: GrantScope = "once"


@final
class Grants:
    """Keeps what was allowed for the session. An approval for one call is only handed back, to be carried by that call.

    Kept by digest it would let a second, equal call through that nobody was asked about. `clock` is monotonic, in seconds.
    `kept` is what the user allowed for good, by lasting digest, as it was when the runner was entered.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, kept: Mapping[str, Kept] | None = None) -> None:
        self._clock = clock
        self._kept = dict(kept or {})
        self._session: dict[str, Grant] = {}

    def allow(self, key: GrantKey, for_: GrantScope, seconds: float) -> Grant:
        """Grant `key` for `seconds` from now. Raises ConfigError when they are not finite and more than 0."""
        if not math.isfinite(seconds) or seconds <= 0:
            raise ConfigError("the lifetime of a grant", seconds, "a finite number of seconds, more than 0")
        now = self._clock()
        grant = Grant(key.digest(), now + seconds, for_)
        if for_ == "session":
            self._session = {digest: held for digest, held in self._session.items() if held.expires_at > now}
            held = self._session.get(grant.digest)
            if held is None or held.expires_at < grant.expires_at:
                self._session[grant.digest] = grant
        return grant

    def valid(self, key: GrantKey) -> bool:
        """Whether a session grant covers exactly this call, now."""
        held = self._session.get(key.digest())
        return held is not None and self.holds(held, key)

    def holds(self, grant: Grant, key: GrantKey) -> bool:
        """Whether `grant`, the one a call carries, still covers exactly this call, now."""
        return grant.digest == key.digest() and self._clock() < grant.expires_at

    def kept(self, lasting_digest: str) -> Kept | None:
        """What the user allowed for good, if it covers exactly this call, now."""
        found = self._kept.get(lasting_digest)
        return found if found is not None and datetime.now(UTC) < found.until else None

    def revoke(self, key: GrantKey) -> bool:
        """Take a session grant back; True if there was one."""
        return self._session.pop(key.digest(), None) is not None
