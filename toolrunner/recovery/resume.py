"""A call that waited for its approval over a restart goes on: judged anew by everything but the question that has its answer.

No state. It keeps its run id, so its journal tells one story: asked by one owner, answered and started under another.
"""

from collections.abc import Callable
from typing import Any

from toolrunner.abort import AbortSignal
from toolrunner.calls import ToolCall
from toolrunner.effects import EffectLedger
from toolrunner.facts import AbortReason
from toolrunner.facts.frozen import freeze_arguments
from toolrunner.pipeline.act import FreePermit, act
from toolrunner.pipeline.approve import lasting_digest, take_answer
from toolrunner.pipeline.course import close_truthfully, settle
from toolrunner.pipeline.environment import grant_key
from toolrunner.pipeline.prepare import ask_guards, decide, look_up, prepare
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.policy import Answer, AnswerKind
from toolrunner.records import CallAnswered
from toolrunner.recovery.questions import Question
from toolrunner.results import Code, Error, ErrorKind, Outcome, ToolResult


def reopened(
    question: Question, services: Services, signal: AbortSignal, stop: Callable[[AbortReason], object], deps: Any
) -> ActiveCall:
    """The call as it is on record. Its arguments were frozen when they were written, so they freeze again."""
    story = question.story
    recorded = story.recorded
    assert recorded is not None
    arguments = freeze_arguments(story.arguments)
    call = ToolCall(
        story.name,
        arguments,
        call_id=recorded.call_id,
        kind=recorded.kind,
        idempotency_key=recorded.idempotency_key,
        timeout=recorded.timeout,
        meta=freeze_arguments(recorded.meta, "metadata"),
        provider_meta=freeze_arguments(recorded.provider_meta, "metadata"),
    )
    ledger = EffectLedger(story.run_id, services.emit, loop_call=services.loop_call)
    state = ActiveCall(call=call, run_id=story.run_id, signal=signal, deps=deps, ledger=ledger, stop_batch=stop)
    state.arguments = arguments
    state.modified_by = story.modified.by if story.modified is not None else None
    return state


def record_answer(question: Question, services: Services, answer: Answer) -> None:
    """`call/answered`. Not waited for here: it is in the commit of the dispatch, or of the result."""
    decision = answer.decision
    services.emit(
        CallAnswered(
            run_id=question.story.run_id,
            approval_id=question.asked.approval_id,
            answer=answer.kind.value,
            text=answer.text,
            for_=decision.for_ if decision is not None else "once",
        )
    )


async def resume(state: ActiveCall, services: Services, question: Question, answer: Answer) -> ToolResult:
    """Rows 2 to 12. What breaks off closes the call truthfully and is raised again."""
    try:
        await _judge(state, services, question, answer)
        state.decided.set()
        if state.refusal is None:
            await act(state, services, FreePermit())
    except BaseException as error:
        close_truthfully(state, error)
        raise
    return await settle(state, services)


async def _judge(state: ActiveCall, services: Services, question: Question, answer: Answer) -> None:
    """Rows 2 to 5. A rule or a hook that denies today wins over a yes to yesterday's question."""
    look_up(state, services)
    if state.refusal is None:
        await decide(state, services)
    if state.refuse_if_aborted():
        return
    assert state.registration is not None
    key = state.grant_key = grant_key(state.registration, state.arguments, state.environment)
    if answer.kind is AnswerKind.ALLOW and lasting_digest(key, state.registration) != question.asked.digest:
        text = "the tool, or where it would run, is not what the approval was asked for"
        state.refuse(Outcome.DENIED, Code.GRANT_EXPIRED, Error(ErrorKind.APPROVER, text))
    elif take_answer(state, services, answer):
        await prepare(state, services)  # other arguments were allowed: they are judged, and asked about, like new ones
    elif state.refusal is None:
        ask_guards(state, services)
