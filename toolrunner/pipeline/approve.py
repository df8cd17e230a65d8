"""Row 4: an ask and its answer. A grant is bound to exactly the call it was given for, and expires."""

from dataclasses import replace

from toolrunner.facts import AbortReason, GrantKey, Source
from toolrunner.facts.frozen import FreezeError, freeze_arguments
from toolrunner.facts.texts import well_formed
from toolrunner.pipeline.environment import grant_key
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.policy import Answer, AnswerKind, ApprovalRequest, Remember
from toolrunner.records import CallDecided, CallModified
from toolrunner.results import Code, Error, ErrorKind, Outcome
from toolrunner.results.phrases import sentence
from toolrunner.tools import Registration

GRANT_SECONDS = 600.0
"""How long an approval for one call holds until its moment of action: long enough for a queue, short enough to be remembered."""

SESSION_GRANT_SECONDS = 8 * 3600.0
"""How long a session grant holds: a working day."""

NOT_COVERED = (
    "The approval covers this call and its surroundings; it does not cover the contents of files that the command reads."
)


async def approve(state: ActiveCall, services: Services) -> bool:
    """Have the call approved if anybody wanted that. True = the arguments were changed, so it is judged again from row 2."""
    if state.ask_text is None or state.refuse_if_aborted():
        return False
    assert state.registration is not None
    key = state.grant_key = grant_key(state.registration, state.arguments, state.environment)
    if earlier := _granted_earlier(key, state.registration, services):
        by, text = earlier
        state.grant = services.grants.allow(key, "once", GRANT_SECONDS)
        services.emit(CallDecided(run_id=state.run_id, decision="allow", by=by, text=text))
        return False
    state.waiting_for_approval = True
    state.decided.set()
    state.moved()
    try:
        request = _request(state, lasting_digest(key, state.registration))
        # A call made in a body goes down with that body; of any other the journal has all that it was made with.
        answer = await services.approvals.ask(request, state.signal, outlives=state.parent is None)
    finally:
        state.waiting_for_approval = False
        state.moved()
    return take_answer(state, services, answer)


def _granted_earlier(key: GrantKey, registration: Registration, services: Services) -> tuple[str, str] | None:
    """By what exactly this call was allowed before it came, and when."""
    if services.grants.valid(key):
        return "session grant", "approved earlier in this session"
    kept = services.grants.kept(lasting_digest(key, registration))
    if kept is not None:
        return "remembered answer", f"approved by the user on {kept.at:%Y-%m-%d} until {kept.until:%Y-%m-%d}"
    return None


def lasting_digest(key: GrantKey, registration: Registration) -> str:
    """What an approval covers, in words that hold over a restart: the tool by its version, which tells changed ones apart."""
    return replace(key, registration=registration.tool.version).digest()


def _request(state: ActiveCall, digest: str) -> ApprovalRequest:
    assert state.registration is not None
    assert state.ask_text is not None
    return ApprovalRequest(
        run_id=state.run_id,
        tool=state.name,
        arguments=state.arguments,
        digest=digest,
        call_id=state.call.call_id,
        text=f"{sentence(state.ask_text)} {NOT_COVERED}",
        annotations=state.registration.tool.annotations,
    )


def take_answer(state: ActiveCall, services: Services, answer: Answer) -> bool:
    """Do what the answer says. True = it allowed other arguments, so the call is judged again from row 2."""
    match answer.kind:
        case AnswerKind.ALLOW:
            return _allowed(state, services, answer)
        case AnswerKind.ABORTED:
            if not state.refuse_if_aborted():  # the desk saw an abort that this signal does not show: fail closed
                _denied(state, ErrorKind.APPROVER_UNAVAILABLE, answer.text)
        case AnswerKind.DENY:
            _denied(state, ErrorKind.APPROVER, answer.text)
        case AnswerKind.STOP:
            _denied(state, ErrorKind.APPROVER, answer.text)
            state.stop_batch(AbortReason(Source.APPROVER, answer.text))
        case AnswerKind.TIMEOUT:
            _denied(state, ErrorKind.APPROVAL_TIMEOUT, answer.text)
        case AnswerKind.UNAVAILABLE:
            _denied(state, ErrorKind.APPROVER_UNAVAILABLE, answer.text)
    return False


def _denied(state: ActiveCall, kind: ErrorKind, text: str) -> None:
    state.refuse(Outcome.DENIED, Code.DENIED, Error(kind, well_formed(text)))


def _allowed(state: ActiveCall, services: Services, answer: Answer) -> bool:
    decision = answer.decision
    assert decision is not None
    assert state.grant_key is not None
    # The approval may have taken long: an abort that came meanwhile wins over a late yes.
    if state.refuse_if_aborted():
        return False
    if decision.arguments is not None:
        try:
            frozen = freeze_arguments(decision.arguments)
        except FreezeError as error:
            _denied(state, ErrorKind.APPROVER, f"the approver allowed other arguments, but {error}")
            return False
        if frozen != state.arguments:
            state.modify(frozen, by="approver")
            services.emit(CallModified(run_id=state.run_id, arguments=frozen, by="approver"))
            return True
    lasts = decision.for_ == "session" and (services.policy is None or services.policy.remember is not Remember.NO)
    seconds = SESSION_GRANT_SECONDS if lasts else GRANT_SECONDS
    state.grant = services.grants.allow(state.grant_key, "session" if lasts else "once", seconds)
    return False
