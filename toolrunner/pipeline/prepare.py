"""Rows 0 to 5: everything that is settled about a call before anything of it may run.

Each function is one row; each wait is followed by the check of the caller's signal. What closes the way is written to
`state.refusal`; a denial or an error that came first stays what it is. Nothing here starts a body.
"""

import inspect
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolrunner.facts import AbortReason, Note, NoteKind, Source
from toolrunner.facts.frozen import FreezeError, freeze_arguments
from toolrunner.facts.texts import well_formed
from toolrunner.pipeline.approve import approve
from toolrunner.pipeline.deadlines import is_duration
from toolrunner.pipeline.environment import environment_of
from toolrunner.pipeline.foreign import text_of, type_name
from toolrunner.pipeline.hooks import Ask, Cancel, Guard, HookFailed, PreHook, hook_error, hook_name, run_hook
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.pipeline.subjects import containing, subject_of
from toolrunner.policy import Decision
from toolrunner.records import CallDecided, CallRecorded
from toolrunner.results import Code, Error, ErrorKind, Outcome
from toolrunner.tools import BodyKind, InvalidArguments
from toolrunner.tools.arguments import shortened

MAX_MODIFICATIONS = 3
"""How often an approver may allow other arguments than those it was asked about; more would be a conversation."""


def record(state: ActiveCall, services: Services) -> None:
    """Rows 0 and 1: read the arguments once, freeze them, look at the signal. From here on the call gets exactly one result."""
    given = state.call
    try:
        arguments = state.arguments = _frozen(given.arguments)
        state.call = given.with_frozen(arguments, _metadata(given.meta), _metadata(given.provider_meta))
    except FreezeError as error:
        state.problem = str(error)
        # What cannot be said as JSON is not repeated anywhere; raw text can, and helps whoever wrote it.
        raw = state.arguments = well_formed(given.arguments) if isinstance(given.arguments, str) else None
        state.call = replace(given, arguments=raw or {}, meta={}, provider_meta={})
        _refuse_arguments(state, state.problem)
    if not given.name.isascii():
        state.call = replace(state.call, name=well_formed(given.name))
    call = state.call
    services.emit(
        CallRecorded(
            run_id=state.run_id,
            name=call.name,
            arguments=state.arguments,
            call_id=call.call_id,
            parent_run_id=state.parent.run_id if state.parent else None,
            idempotency_key=call.idempotency_key,
            problem=state.problem,
            kind=call.kind,
            timeout=call.timeout if call.timeout is not None and is_duration(call.timeout) else None,
            meta=call.meta,
            provider_meta=call.provider_meta,
        )
    )
    # Looked at here and not when the call's turn has come: a call that was queued when the abort came was made before it.
    if state.refusal is None and state.refuse_if_aborted():
        state.notes.append(Note(NoteKind.ABORTED_AT_ENTRY, "The stop had been asked for before the call was made."))


def _frozen(arguments: object) -> dict[str, Any]:
    try:
        return freeze_arguments(_parsed(arguments))
    except FreezeError:
        raise
    except Exception as error:  # a foreign mapping's own code; it must not take the rest of its batch down
        raise FreezeError(f"arguments could not be read: {type_name(error)}: {text_of(error)}") from error


def _metadata(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Frozen too: it is part of the result, which nobody may change."""
    return freeze_arguments(meta, "metadata")


def _parsed(arguments: object) -> object:
    """Raw JSON text as providers send it, read; no text at all is a call without arguments."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError) as error:
        raise FreezeError(f"arguments are not JSON: {error}") from error


async def prepare(state: ActiveCall, services: Services) -> None:
    """Rows 1 to 5. Afterwards `state.refusal` is set, or the call may go on to act."""
    if state.refuse_if_aborted():
        return
    for _ in range(MAX_MODIFICATIONS + 1):
        look_up(state, services)
        if state.refusal is None:
            await decide(state, services)
        if state.refusal is not None or not await approve(state, services):
            break
    else:
        text = f"the approver changed the arguments more than {MAX_MODIFICATIONS} times"
        state.refuse(Outcome.DENIED, Code.DENIED, Error(ErrorKind.APPROVER, text))
    if state.refusal is None:
        ask_guards(state, services)
    state.decided.set()


def look_up(state: ActiveCall, services: Services) -> None:
    """Row 2: find the tool and let it validate the arguments; a command tool says here what it would start."""
    registration = services.catalogue.find(state.name)
    state.registration = registration
    if registration is None:
        known = services.catalogue.nearest(state.name)
        # The row says that no tool has this name; here is which name, and the nearest one.
        text = f"{shortened(state.name)} is not registered{f'; did you mean {known!r}?' if known else ''}"
        state.refuse(Outcome.REJECTED, Code.UNKNOWN_TOOL, Error(ErrorKind.UNKNOWN_TOOL, text))
        return
    if state.call.timeout is not None and not is_duration(state.call.timeout):
        _refuse_arguments(state, f"timeout is {state.call.timeout!r}; expected a finite number of seconds above 0")
        return
    tool = registration.tool
    try:
        assert isinstance(state.arguments, Mapping)
        state.kwargs = tool.parse(state.arguments)
        state.resources = tool.locks(state.kwargs)
        state.command = tool.command(state.kwargs) if tool.kind is BodyKind.COMMAND else None
        state.line = tool.fn(**state.kwargs) if tool.kind is BodyKind.SHELL else None
    except InvalidArguments as error:
        _refuse_arguments(state, error.message)
        return
    state.environment = environment_of(state.command, containing(state, services))


def _refuse_arguments(state: ActiveCall, message: str) -> None:
    state.refuse(Outcome.REJECTED, Code.INVALID_ARGUMENTS, Error(ErrorKind.INVALID_ARGUMENTS, message))


async def decide(state: ActiveCall, services: Services) -> None:
    """Row 3: policy, then the pre-execute hooks in order. The strictest answer wins: deny, then ask, then allow."""
    assert state.registration is not None
    state.ask_text = None
    if services.policy is None:
        _decided(state, services, "allow", "no policy", "no policy was given, so every tool is allowed")
    else:
        try:
            judgement = services.policy.judge(subject_of(state, services))
        except Exception as error:  # noqa: BLE001 - a policy that cannot decide must not let anything through
            _deny(state, services, "policy", ErrorKind.POLICY, f"the policy could not decide: {text_of(error)}")
            return
        if judgement.decision == "deny":
            _deny(state, services, judgement.by, ErrorKind.POLICY, judgement.text or f"denied by {judgement.by}")
            return
        _decided(state, services, judgement.decision, judgement.by, judgement.text)
        if judgement.decision == "ask":
            state.ask_text = judgement.text or f"{judgement.by} asks for approval of {state.name}"
    for hook in services.hooks.pre:
        await _ask_hook(state, services, hook)
        if state.refuse_if_aborted():
            return


async def _ask_hook(state: ActiveCall, services: Services, hook: PreHook) -> None:
    by = f"hook:{hook_name(hook)}"
    try:
        verdict = await run_hook(
            services.root, state.context, hook, lambda: hook(state.call, state.signal), services.limits.hook_timeout
        )
    except HookFailed as failed:
        if failed.stopped and state.refuse_if_aborted():
            return
        state.refuse(Outcome.REJECTED, Code.HOOK_ERROR, failed.error)
        return
    match verdict:
        case None:
            pass
        case Ask(text=text):
            _decided(state, services, "ask", by, text)
            state.ask_text = state.ask_text or text
        case Cancel(text=text):
            _decided(state, services, "cancel", by, text)
            _denied(state, ErrorKind.HOOK, text or f"denied by {by}")
            state.stop_batch(AbortReason(Source.HOOK, text))
        case Decision():
            _take_decision(state, services, by, verdict)
        case _:
            text = (
                f"hook {hook_name(hook)!r} answered with a {type(verdict).__name__}; expected None, a Decision, ask() or cancel()"
            )
            state.refuse(Outcome.REJECTED, Code.HOOK_ERROR, Error(ErrorKind.HOOK, text))


def _take_decision(state: ActiveCall, services: Services, by: str, decision: Decision) -> None:
    if decision.kind == "allow":
        if decision.arguments is not None:
            text = f"{by} allowed other arguments; only an approver may change them"
            state.refuse(Outcome.REJECTED, Code.HOOK_ERROR, Error(ErrorKind.HOOK, text))
        return
    _deny(state, services, by, ErrorKind.HOOK, decision.feedback or f"denied by {by}")
    if decision.kind == "stop":
        state.stop_batch(AbortReason(Source.HOOK, decision.feedback))


def ask_guards(state: ActiveCall, services: Services) -> None:
    """Row 5: guards, synchronously, as the last thing before the waits; then the check."""
    for guard in services.hooks.guards:
        try:
            text = guard(state.call)
        except Exception as error:  # noqa: BLE001 - foreign code: fail closed
            state.refuse(Outcome.REJECTED, Code.HOOK_ERROR, hook_error(guard, error))
            return
        if text is not None and not isinstance(text, str):
            state.refuse(Outcome.REJECTED, Code.HOOK_ERROR, _no_text(guard, text))
            return
        if text is not None:
            _deny(state, services, f"guard:{hook_name(guard)}", ErrorKind.GUARD, text)
            return
    state.refuse_if_aborted()


def _no_text(guard: Guard, answer: object) -> Error:
    hint = "; a guard is no coroutine function, write it with `def`" if inspect.isawaitable(answer) else ""
    if inspect.iscoroutine(answer):
        answer.close()
    text = f"guard {hook_name(guard)!r} answered with a {type(answer).__name__}; expected None or a text{hint}"
    return Error(ErrorKind.HOOK, text)


def _deny(state: ActiveCall, services: Services, by: str, kind: ErrorKind, text: str) -> None:
    _decided(state, services, "deny", by, text)
    _denied(state, kind, text)


def _denied(state: ActiveCall, kind: ErrorKind, text: str) -> None:
    state.refuse(Outcome.DENIED, Code.DENIED, Error(kind, well_formed(text)))


def _decided(state: ActiveCall, services: Services, decision: str, by: str, text: str) -> None:
    text = well_formed(text)
    services.emit(CallDecided(run_id=state.run_id, decision=decision, by=by, text=text))  # type: ignore[arg-type]
