"""Rows 10 to 12: checks after the body, post-execute hooks in model order, and the result, published once.

Nothing here holds a slot or a lock, so nothing here delays another call's start. Hooks may change what the model reads; the
facts, effects above all, are put in after them.
"""

from dataclasses import replace

from toolrunner.facts import AbortReason, Content, Effects, EffectState, Evidence, Json, NoteKind, StillRunning, StopPhase, Text
from toolrunner.pipeline.compensate import compensate
from toolrunner.pipeline.ends import BodyEnd
from toolrunner.pipeline.hooks import Block, HookFailed, PostHook, Replace, hook_name, run_hook
from toolrunner.pipeline.jobs import end_jobs, living
from toolrunner.pipeline.outcome import effects_of, verdict_of
from toolrunner.pipeline.reconcile import note_doubt
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.records import CallSettled
from toolrunner.results import Code, Ended, Error, ErrorKind, Outcome, Retry, ToolResult, retry_answer
from toolrunner.tasks import wait_through
from toolrunner.tools import InvalidOutput, Reply


async def finish(state: ActiveCall, services: Services) -> ToolResult:
    """Settle a call that is over, or was refused. Exactly one result comes out, whatever hooks do."""
    check_after(state)
    if state.previous is not None:  # and so all before it: hooks and commits are observed in the model's order
        await wait_through(state.previous.settled)
    check_after(state)
    if _is_shown_to_post_hooks(state):
        for hook in services.hooks.post:
            await _ask_post_hook(state, services, hook)
            check_after(state)
    if state.cause is not None:
        if state.jobs:
            await end_jobs(state)  # a call that was stopped leaves nothing behind
        await compensate(state, services)  # of a stop that came after the body; else it was done when that had ended
    return publish(state, services)


def publish(state: ActiveCall, services: Services) -> ToolResult:
    """Row 12, synchronously: the result is built, journalled and handed out. The first result of a call is its only one."""
    if state.result is None:
        try:
            state.result = provisional(state)
        except Exception as error:
            state.result = _untold(state, error)
            raise  # a bug of ours; but who waits gets what is certain, or would wait for ever
        finally:
            _hand_out(state, services)
    return state.result


def _hand_out(state: ActiveCall, services: Services) -> None:
    if state.result is not None:
        try:
            services.emit(CallSettled(run_id=state.run_id, result=state.result))
            if not state.lives:  # else its body, when it is over
                note_doubt(state, services)
        finally:
            # Whatever the journal let out: whoever waits for the result or its key gets it.
            state.settled.set()
            if state.claimed_key is not None:
                services.keys.finish(state.claimed_key, state.result)


def _untold(state: ActiveCall, error: Exception) -> ToolResult:
    """The result when none can be built of what is known: what is certain of any call, started or not."""
    never = Effects(EffectState.NONE, Evidence.NOT_STARTED, complete=True)
    return ToolResult(
        run_id=state.run_id,
        name=state.name,
        outcome=Outcome.FAILED if state.started else Outcome.ABORTED,
        code=Code.LOST if state.started else Code.ABORTED_BEFORE_DISPATCH,
        started=state.started,
        ended=Ended.LOST if state.started else None,
        effects=Effects(EffectState.UNKNOWN, None, state.ledger.records) if state.started else never,
        call_id=state.call.call_id,
        kind=state.call.kind,
        provider_meta=state.call.provider_meta,
        arguments=state.arguments,
        error=Error(ErrorKind.INTERNAL, f"toolrunner failed: {error!r}"),
        attempts=state.attempts,
        retry=Retry.CHECK_FIRST if state.started else Retry.SAFE,
        still_running=(state.left_running or None) if state.started else (),
    )


def check_after(state: ActiveCall) -> None:
    """Row 10: an abort that came after the body turns a success into an abort, and takes nothing away. Drains are not seen."""
    if not state.signal.aborted:  # cheap, and nearly always so
        return
    if state.started and state.cause is not None and state.stop.reason is not None:  # what stopped the body stays the cause
        return
    reason: AbortReason | None = state.signal.immediate().reason
    if reason is None or state.refusal is not None:
        return
    if not state.started:
        state.refuse_because(reason)  # a wrapper had answered in the body's place
        return
    state.stop.request(reason, StopPhase.FINISHING)
    if state.end is None or state.end.ended is not Ended.LOST:  # one that was lost before is a failure and stays one
        state.cause = state.cause or reason


def _is_shown_to_post_hooks(state: ActiveCall) -> bool:
    """Post hooks see calls that ran, that a wrapper answered or broke, and denials; not what was wrong or stopped before that."""
    if state.refusal is None:
        return state.replay is None
    return state.refusal.outcome in (Outcome.DENIED, Outcome.FAILED)


async def _ask_post_hook(state: ActiveCall, services: Services, hook: PostHook) -> None:
    result = provisional(state)
    signal = state.signal
    try:
        verdict = await run_hook(
            services.root, state.context, hook, lambda: hook(state.call, result, signal), services.limits.hook_timeout
        )
    except HookFailed as failed:
        if not (failed.stopped and signal.aborted):
            state.post_error = state.post_error or failed.error
        return
    match verdict:
        case None:
            pass
        case Replace():
            _replace(state, result, verdict, hook_name(hook))
        case Block(text=text):
            state.wrapped = Reply(None, (Text(text),), result.follow_up, result.error)
            state.post_error = state.post_error or Error(ErrorKind.HOOK, text)
        case _:
            text = f"hook {hook_name(hook)!r} answered with a {type(verdict).__name__}; expected None, replace() or block()"
            state.post_error = state.post_error or Error(ErrorKind.HOOK, text)


def _replace(state: ActiveCall, result: ToolResult, verdict: Replace, name: str) -> None:
    """Put a hook's content in the place of the answer's, if it can be sent at all."""
    assert state.registration is not None
    # No content at all means that nothing is to be shown, which an empty Reply would not say: it shows its value.
    reply = Reply(result.value, verdict.content or (Text(""),), (*result.follow_up, *verdict.follow_up), result.error)
    try:
        state.wrapped = state.registration.tool.dump(reply)
    except InvalidOutput as error:
        text = f"hook {name!r} replaced the content with what cannot be sent: {error.message}"
        state.post_error = state.post_error or Error(ErrorKind.HOOK, text)


def body_result(state: ActiveCall) -> ToolResult:
    """The result as the body left it, before wrappers and hooks had their say: what `call/ended` keeps."""
    end = state.end
    result = _assemble(state, end.reply if end is not None else Reply(), end.error if end is not None else None)
    told_by = _told_by(state)
    state.ended_result = None if told_by is None else (told_by, result)
    return result


def _told_by(state: ActiveCall) -> tuple[object, ...] | None:
    """All that may still change between the end of a body and the result of its call; None when something has that adds to it.

    Mostly nothing does, and the result in `call/ended` is the one that is published: building it twice was a tenth of a call.
    """
    if state.wrapped is not None or state.wrapper_error or state.post_error or state.refusal or state.jobs or state.left_running:
        return None
    changing = (state.end, state.attempts, state.cause, state.stop, state.stop.reason, state.answered, state.about_run_id)
    return (*changing, state.undos_running, len(state.notes), len(state.follow_up), state.ledger.records)


def provisional(state: ActiveCall) -> ToolResult:
    """The result as it stands now. Building it changes nothing, so it may be built as often as somebody wants to look."""
    if state.replay is not None:
        return _replayed(state, state.replay)
    if state.ended_result is not None and state.ended_result[0] == _told_by(state):
        return state.ended_result[1]
    end_error = state.end.error if state.end is not None else None
    refused = state.refusal.error if state.refusal is not None else None
    error = refused or state.post_error or state.wrapper_error or end_error
    reply = state.wrapped or (state.end.reply if state.end is not None else Reply())
    return _assemble(state, reply, error)


def _assemble(state: ActiveCall, reply: Reply, error: Error | None) -> ToolResult:
    judged = verdict_of(state)
    effects = effects_of(state)
    still_running = _still_running(state)
    end = state.end
    tool = state.registration.tool if state.registration is not None else None
    started = state.started
    # Facts that wrappers and hooks cannot touch are read from the body's end here, after them.
    return ToolResult(
        run_id=state.run_id,
        name=state.name,
        outcome=judged.outcome,
        code=judged.code,
        started=started,
        ended=end.ended if end is not None and started else None,
        effects=effects,
        call_id=state.call.call_id,
        kind=state.call.kind,
        provider_meta=state.call.provider_meta,
        arguments=state.arguments,
        modified_by=state.modified_by,
        parent_run_id=state.parent.run_id if state.parent is not None else None,
        value=reply.value,
        content=_content(reply, error),
        follow_up=tuple(reply.follow_up) if reply is state.wrapped else (*state.follow_up, *reply.follow_up),
        error=error,
        attempts=state.attempts,
        replayed=state.answered and state.about_run_id is not None,
        about_run_id=state.about_run_id,
        retry=retry_answer(
            judged.outcome, judged.code, started, effects,
            idempotent=tool is not None and tool.annotations.idempotent, error_kind=error.kind if error is not None else None,
            still_running=bool(still_running),
        ),
        stop=state.stop.facts(),
        process=end.process if end is not None else None,
        still_running=still_running,
        enforced=_enforced(end) if end is not None else (),
        missing=end.missing if end is not None else (),
        sandbox=end.sandbox if end is not None else None,
        notes=tuple(state.notes),
    )  # fmt: skip


def _enforced(end: BodyEnd) -> tuple[str, ...]:
    kill_tree = ("kill_tree",) if end.process is not None and end.still_running == () else ()
    return tuple(dict.fromkeys((*kill_tree, *end.enforced)))


def _still_running(state: ActiveCall) -> tuple[StillRunning, ...] | None:
    if state.end is None:
        return state.left_running
    if not (state.jobs or state.undos_running or state.children_running != () or state.end.process):  # most calls
        return state.end.still_running
    kept = state.end.process is not None and bool(state.end.process.kept)
    return joined(state.undos_running, () if kept else state.end.still_running, state.children_running, living(state))


def joined(*parts: tuple[StillRunning, ...] | None) -> tuple[StillRunning, ...] | None:
    """What still runs of several things together; None if nothing was found and one of them could not prove it."""
    listed = tuple(one for part in parts for one in part or ())
    return listed or (None if None in parts else ())


def _content(reply: Reply, error: Error | None) -> tuple[Content, ...]:
    if reply.content or reply.value is None or error is not None:
        return tuple(reply.content)
    return (Json(reply.value),)


def _replayed(state: ActiveCall, earlier: ToolResult) -> ToolResult:
    """The recorded result of the call that had the same key: its facts, this call's names."""
    return replace(
        earlier,
        run_id=state.run_id,
        call_id=state.call.call_id,
        kind=state.call.kind,
        provider_meta=state.call.provider_meta,
        modified_by=state.modified_by,
        parent_run_id=state.parent.run_id if state.parent is not None else None,
        replayed=True,
        about_run_id=earlier.about_run_id or earlier.run_id,
        retry=Retry.NO if any(note.kind is NoteKind.RECONCILED for note in state.notes) else earlier.retry,
        notes=tuple(state.notes),
    )
