"""How an ask can end, and the sentence for each end. Pure; no state."""

import traceback
from dataclasses import dataclass
from enum import StrEnum

from toolrunner.policy.decisions import Decision, DecisionKind

_ABORTED = "The call was stopped before its approval was answered."
_DENIED = "The approver denied the call."
_STOPPED = "The approver denied the call and stopped what was going on."
_NOBODY = "The call needs an approval and nobody can be asked, so it was denied."

_ERROR_CHARS = 500
"""How much of an approver's exception is told: enough to name the cause, and bounded because it is foreign."""


class AnswerKind(StrEnum):
    """How an ask ended. Only `allow` lets a call go on; the last three say why there is no answer."""

    ALLOW = "allow"
    DENY = "deny"
    STOP = "stop"
    ABORTED = "aborted"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of one ask. `text` is for people and the model; `decision` is None unless somebody answered.

    `approval_id` is empty when nobody was asked, and nothing was recorded then.
    """

    kind: AnswerKind
    text: str = ""
    decision: Decision | None = None
    approval_id: str = ""


def aborted() -> Answer:
    """An abort came first."""
    return Answer(AnswerKind.ABORTED, _ABORTED)


def nobody(question: str) -> Answer:
    """There is no approver at all."""
    return Answer(AnswerKind.UNAVAILABLE, f"{_NOBODY} It was to be asked: {question}" if question else _NOBODY)


def judged(decision: object) -> Answer:
    """What an approver said. Anything that is no Decision is no answer."""
    if type(decision) is Decision:
        match decision.kind:
            case DecisionKind.ALLOW:
                return Answer(AnswerKind.ALLOW, "", decision)
            case DecisionKind.DENY:
                return Answer(AnswerKind.DENY, _saying(_DENIED, decision.feedback), decision)
            case DecisionKind.STOP:
                return Answer(AnswerKind.STOP, _saying(_STOPPED, decision.feedback), decision)
    return unavailable(f"The approver gave no valid answer ({type(decision).__name__})")


def _saying(text: str, feedback: str) -> str:
    return f"{text} {feedback}" if feedback else text


def unavailable(why: str) -> Answer:
    """Nobody could answer."""
    return Answer(AnswerKind.UNAVAILABLE, f"{why}, so the call was denied.")


def timed_out(limit: float) -> Answer:
    """Nobody did, in `limit` seconds."""
    return Answer(AnswerKind.TIMEOUT, f"Nobody answered within {limit:g} s, so the call was denied.")


def error_text(error: BaseException) -> str:
    """An exception as one bounded line or two."""
    # The traceback module survives an exception whose own __str__ fails.
    return "".join(traceback.format_exception_only(error)).strip()[:_ERROR_CHARS]
