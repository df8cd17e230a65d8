"""From the story of a call that has no result to the one result that its journal allows. Pure; no state.

Four cases (DESIGN, invariants 1, 3 and 5): settled -> itself; ended -> the recorded outcome, its hooks lost; dispatched -> LOST,
never run again; else it never started. Doubt only ever weakens: what the rest of the journal could have said is not guessed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from toolrunner.effects import BodyFacts, fold
from toolrunner.facts import (
    EffectRecord,
    Effects,
    EffectStage,
    EffectState,
    Evidence,
    Note,
    NoteKind,
    Source,
    StillRunning,
    Stop,
    StopPhase,
)
from toolrunner.records import CallEnded
from toolrunner.recovery.stories import Story
from toolrunner.results import Code, Ended, Error, ErrorKind, Outcome, Retry, ToolResult, retry_answer

HOST_ENDED = "the host ended before the call could start"
"""Why a call never started that nobody had asked to stop."""

_LOST = "the host ended after the call was dispatched, so its journal does not say how far it came"
_HOOKS_LOST = Note(NoteKind.HOOKS_LOST, "The host ended before the hooks after the call had run.")
_NEVER = Effects(EffectState.NONE, Evidence.NOT_STARTED, complete=True)
_CERTAIN = frozenset({EffectState.NONE, EffectState.COMPLETED, EffectState.REVERTED})


def recovered(
    story: Story,
    children: Mapping[str, ToolResult],
    at: datetime,
    still_running: tuple[StillRunning, ...] | None = None,
) -> ToolResult:
    """The result of one call. `children`: the results of its child calls, which are recovered first.

    `at` dates a stop that nobody recorded. `still_running`: what a look at its processes showed (None: nothing was found, and
    nothing proves that).
    """
    if story.settled is not None:
        return story.settled.result
    if story.ended is not None:
        return _hooks_lost(story, story.ended)
    if story.dispatched:
        return _lost(story, [children[child.run_id] for child in story.children if child.run_id in children], still_running)
    return _never_started(story, at)


def _hooks_lost(story: Story, ended: CallEnded) -> ToolResult:
    """The body's end stands; what hooks would have made of it is not known, and nobody runs them a second time."""
    result = ended.result if ended.result is not None else _bare(story, ended)
    if story.effects_after_end:
        result = replace(result, effects=_undone_since(story, result))
    code = Code.HOOKS_LOST if result.outcome is Outcome.SUCCEEDED and result.started else result.code
    return replace(result, code=code, notes=(*result.notes, _HOOKS_LOST))


def _told(story: Story, **facts: Any) -> ToolResult:
    """A result that says which call it is of, as its caller and its provider know it."""
    recorded = story.recorded
    if recorded is not None:
        facts["call_id"], facts["parent_run_id"] = recorded.call_id, recorded.parent_run_id
        facts["kind"], facts["provider_meta"] = recorded.kind, recorded.provider_meta
    return ToolResult(run_id=story.run_id, name=story.name, arguments=story.arguments, **facts)


def _bare(story: Story, ended: CallEnded) -> ToolResult:
    """An end that was written without its result (an old record): its own fields are all that is known."""
    records = tuple(story.effects.values())
    facts = BodyFacts(started=ended.started, returned=ended.ended is Ended.RETURNED, saw_abort=story.stop is not None)
    effects = fold(facts, records)
    return _told(
        story,
        outcome=ended.outcome,
        code=ended.code,
        started=ended.started,
        ended=ended.ended,
        effects=effects,
        value=ended.value,
        attempts=len(story.dispatched),
        retry=retry_answer(ended.outcome, ended.code, ended.started, effects, idempotent=False),
        still_running=None if ended.started else (),
    )


def _undone_since(story: Story, result: ToolResult) -> Effects:
    """The effects with what was written after the end: undos, confirmed or not. Without the last word nothing is reverted.

    Effects of child calls are undone by the call that was stopped, and told in its story: its own word comes last.
    """
    latest = story.effects_below()
    before = result.effects.records
    records = tuple(_later(record, latest.get(record.effect_id)) for record in before)
    facts = BodyFacts(
        started=result.started,
        returned=result.ended is Ended.RETURNED,
        # An undo runs for a call that was told to stop: what it has done need not be all that it was for.
        saw_abort=True,
    )
    folded = fold(facts, records)
    if result.effects.state is EffectState.UNKNOWN and not _says_why(before):
        return replace(folded, state=EffectState.UNKNOWN, evidence=Evidence.REPORTED, changes=result.effects.changes)
    return replace(folded, changes=result.effects.changes)


def _later(record: EffectRecord, news: EffectRecord | None) -> EffectRecord:
    return record if news is None else replace(news, owner=news.owner or record.owner)


def _says_why(records: Sequence[EffectRecord]) -> bool:
    """Whether records alone explain a doubt; else it came from the body's end or a scan, and no undo removes it."""
    return any(record.stage in (EffectStage.UNKNOWN, EffectStage.PLANNED) for record in records)


def _lost(story: Story, children: Sequence[ToolResult], still_running: tuple[StillRunning, ...] | None) -> ToolResult:
    effects = _effects_of_lost(story, children)
    return _told(
        story,
        outcome=Outcome.FAILED,
        code=Code.LOST,
        started=True,
        ended=Ended.LOST,
        effects=effects,
        modified_by=story.modified.by if story.modified is not None else None,
        error=Error(ErrorKind.INTERNAL, _LOST),
        attempts=story.dispatched[-1].attempt,
        # Whether the tool is idempotent is not written anywhere, and it may be another one by now.
        retry=Retry.CHECK_FIRST,
        stop=_stop(story, None),
        still_running=still_running,
    )


def _effects_of_lost(story: Story, children: Sequence[ToolResult]) -> Effects:
    """What its records, and its children's, prove. A body whose end nobody saw may have done more than it recorded.

    So an act that is known is `partial` at the most, and "nothing is left of it" is never said: the last undo, the last
    `not applied` need not have been its last act.
    """
    records = [*story.effects.values()]
    for child in children:
        records += [replace(one, owner=one.owner or child.run_id) for one in child.effects.records]
        if child.effects.state in (EffectState.UNKNOWN, EffectState.PARTIAL):
            # As `registry` rolls a child up that is only known to be in doubt.
            records.append(EffectRecord(f"{child.run_id}/call", "call", child.name, EffectStage.UNKNOWN, owner=child.run_id))
    effects = fold(BodyFacts(started=True), records)
    if effects.state in _CERTAIN:
        return replace(effects, state=EffectState.UNKNOWN, evidence=Evidence.REPORTED if records else None, complete=False)
    return effects


def _never_started(story: Story, at: datetime) -> ToolResult:
    """Its body was never entered: `call/dispatched` is durable before that, and it is not there."""
    outcome, code, error = _why_never(story)
    stopped = code is Code.ABORTED_BEFORE_DISPATCH
    return _told(
        story,
        outcome=outcome,
        code=code,
        started=False,
        ended=None,
        effects=replace(_NEVER, records=tuple(story.effects.values())),
        modified_by=story.modified.by if story.modified is not None else None,
        error=error,
        retry=retry_answer(outcome, code, False, _NEVER, idempotent=False),
        stop=_stop(story, at if stopped else None),
    )


def _why_never(story: Story) -> tuple[Outcome, Code, Error | None]:
    """What had closed its way already, or else the end of its host. A denial that came first stays a denial."""
    if story.recorded is not None and story.recorded.problem is not None:
        return Outcome.REJECTED, Code.INVALID_ARGUMENTS, Error(ErrorKind.INVALID_ARGUMENTS, story.recorded.problem)
    if story.denial is not None:
        return Outcome.DENIED, Code.DENIED, Error(_denier(story.denial.by), story.denial.text or f"denied by {story.denial.by}")
    answer = story.answered
    if answer is not None and answer.answer in ("deny", "stop", "timeout", "unavailable"):
        kinds = {"timeout": ErrorKind.APPROVAL_TIMEOUT, "unavailable": ErrorKind.APPROVER_UNAVAILABLE}
        return Outcome.DENIED, Code.DENIED, Error(kinds.get(answer.answer, ErrorKind.APPROVER), answer.text)
    return Outcome.ABORTED, Code.ABORTED_BEFORE_DISPATCH, None


def _denier(by: str) -> ErrorKind:
    return ErrorKind.HOOK if by.startswith("hook:") else ErrorKind.GUARD if by.startswith("guard:") else ErrorKind.POLICY


def _stop(story: Story, at: datetime | None) -> Stop | None:
    """The stop that is on record; without one, with `at`: the end of the host, which no call survives that had not started."""
    asked, told = story.stop, story.delivered
    if asked is not None:
        return Stop(
            source=asked.source,
            reason=asked.reason,
            phase=StopPhase(asked.phase),
            requested_at=asked.at,
            delivered_at=told.at if told is not None else None,
        )
    if at is None:
        return None
    return Stop(source=Source.HOST, reason=HOST_ENDED, phase=StopPhase.BEFORE_DISPATCH, requested_at=at)
