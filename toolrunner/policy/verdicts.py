"""What can be said of a call before anybody is asked, and which of several words counts. Frozen values; no state."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import final


class Verdict(StrEnum):
    """What a rule, a policy or a hook says of a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


STRICTEST_FIRST = (Verdict.DENY, Verdict.ASK, Verdict.ALLOW)
STRICTNESS = {verdict: -place for place, verdict in enumerate(STRICTEST_FIRST)}


@final
@dataclass(frozen=True, slots=True)
class Judgement:
    """What a policy says of one call. `by` names the policy and the rule, `text` is its reason for people and the model."""

    decision: Verdict
    by: str
    text: str = ""


def strictest(judgements: Iterable[Judgement]) -> Judgement:
    """The strictest of several, at least one; the first among equals. So several policies over one call are judged like one."""
    return max(judgements, key=lambda judgement: STRICTNESS[judgement.decision])
