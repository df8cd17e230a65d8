"""Reconcile: a tool is asked, once and within a bound, whether a call of unknown effects took effect; or the user says so.

No state; what comes of it is kept in `Doubts` and told as `call/reconciled`. Asked at the moment at which somebody needs to know:
a writer of the same resource that holds its locks by then, so that nobody changes what is looked at, or the next call with the
same idempotency key.
"""

import contextvars
from collections.abc import Awaitable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, NoReturn, final

import anyio
from pydantic import JsonValue

from toolrunner.abort import AbortController, AbortSignal
from toolrunner.effects import EffectScope, Undo, UndoFunction
from toolrunner.errors import ConfigError, ToolrunnerError
from toolrunner.facts import EffectState
from toolrunner.facts.texts import well_formed
from toolrunner.pipeline.doubts import Doubt, written
from toolrunner.pipeline.durable import durable_problem
from toolrunner.pipeline.hooks import HookFailed, run_hook
from toolrunner.pipeline.nesting import inside
from toolrunner.pipeline.outcome import effects_of
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.records import CallReconciled
from toolrunner.results import Code, Error, ErrorKind, Outcome
from toolrunner.tools import BodyKind, Reconciled, ToolContext

RECONCILE_LIMIT = 10.0
"""Seconds that a tool gets to find out: a request or two to the other side, while a call that wants to start waits."""


class LooksOnly(ToolrunnerError):
    """A reconcile function asked its context for what changes something."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not there in a reconcile function, which finds out and changes nothing")


def note_doubt(state: ActiveCall, services: Services) -> None:
    """Keep a call whose body is over in doubt, if it is and its tool can find out. Before its locks are given back."""
    tool = state.registration.tool if state.registration is not None else None
    if tool is None or tool.reconciler is None or not state.started:
        return
    effects = effects_of(state)
    if effects.state is not EffectState.UNKNOWN:
        services.doubts.drop(state.run_id)
        return
    still_runs = bool(state.undos_running) or (state.end is not None and bool(state.end.still_running))
    writes = written(state.resources)
    services.doubts.add(Doubt(state.run_id, tool, state.call, effects, writes, state.deps, still_runs=still_runs))


async def refuse_if_in_doubt(state: ActiveCall, services: Services) -> bool:
    """Whether a call that would write to something in doubt was refused for it. Holding its locks; after one look, bounded."""
    while (doubt := services.doubts.about(state.resources)) is not None:
        if await settle(services, doubt.run_id, state.signal) is not Reconciled.UNKNOWN:
            continue
        if not state.refuse_if_aborted():
            keys = ", ".join(sorted(doubt.writes & written(state.resources)))
            text = f"call {doubt.run_id} ({doubt.call.name}) wrote to {keys}; look whether it did, and reconcile it"
            state.about_run_id = doubt.run_id
            state.refuse(Outcome.REJECTED, Code.IN_DOUBT, Error(ErrorKind.IN_DOUBT, text))
        return True
    return False


async def settle(services: Services, run_id: str, signal: AbortSignal | None = None) -> Reconciled:
    """What is known of a call in doubt, after its tool was asked; `unknown` also for one that nobody can ask about.

    The tool is asked once, whoever asks and however many do at once; the wait is over within `RECONCILE_LIMIT` and a bit, or when
    `signal` is aborted.
    """
    doubt = services.doubts.of(run_id)
    if doubt is None or (doubt.verdict is None and doubt.still_runs):
        return Reconciled.UNKNOWN
    if doubt.verdict is not None:
        return doubt.verdict
    if doubt.waiting is None:
        doubt.waiting = []
        # A task of its own: whoever asks may be stopped, and others wait for the same answer.
        services.root.spawn(lambda: _ask(services, doubt), f"reconcile {doubt.call.name}", context=inside(services))
    woken = anyio.Event()
    unsubscribe = signal.on_abort(woken.set) if signal is not None else lambda: None
    doubt.waiting.append(woken.set)
    try:
        await woken.wait()
    finally:
        unsubscribe()
    return doubt.verdict or Reconciled.UNKNOWN


async def reconcile_as(services: Services, run_id: str, as_: Reconciled | Literal["completed", "none"], note: str = "") -> bool:
    """The user's word on a call: it took effect, or it did not. False if it was in no doubt here; it is on record all the same.

    Raises:
        ConfigError: neither "completed" nor "none", or it could not be written down.
    """
    if as_ not in (Reconciled.COMPLETED, Reconciled.NONE):
        raise ConfigError("as_", as_, "'completed' or 'none'")
    verdict = Reconciled(as_)
    while True:
        before = _verdict(services, run_id)
        pending = services.emit(CallReconciled(run_id=run_id, as_=verdict.value, by="user", note=well_formed(note)))
        problem = await durable_problem(services, pending)
        if problem is not None:
            raise ConfigError("the journal", problem, "one that can be written; nothing was reconciled")
        doubt = services.doubts.of(run_id)
        if doubt is None:
            return False
        if doubt.verdict is before:
            break
        # The tool answered meanwhile (it does so once), and in the journal the last word counts: say it again.
    services.doubts.answer(doubt, verdict)
    return True


def _verdict(services: Services, run_id: str) -> Reconciled | None:
    doubt = services.doubts.of(run_id)
    return doubt.verdict if doubt is not None else None


async def _ask(services: Services, doubt: Doubt) -> None:
    verdict, note = Reconciled.UNKNOWN, "the reconcile function was broken off"
    try:
        verdict, note = await _asked(services, doubt)
    finally:
        is_first = doubt.verdict is None  # else the user has spoken meanwhile
        if is_first:
            services.doubts.answer(doubt, verdict)
        for tell in doubt.waiting or ():  # before the journal, which may raise
            tell()
        if is_first:
            services.emit(CallReconciled(run_id=doubt.run_id, as_=verdict.value, by="tool", note=note))


async def _asked(services: Services, doubt: Doubt) -> tuple[Reconciled, str]:
    fn = doubt.tool.reconciler
    assert fn is not None
    ctx = ToolContext[Any](
        signal=AbortController().signal,
        deps=doubt.deps,
        call=doubt.call,
        run_id=doubt.run_id,
        kind=BodyKind.ASYNC,
        services=_LookingOn(),
    )
    context = contextvars.copy_context()
    try:
        answer = await run_hook(services.root, context, fn, lambda: fn(ctx, doubt.call, doubt.effects), RECONCILE_LIMIT)
    except HookFailed as failed:
        return Reconciled.UNKNOWN, failed.error.message.replace("hook", "reconcile function", 1)
    try:
        return Reconciled(answer), ""
    except ValueError:
        expected = ", ".join(repr(str(one)) for one in Reconciled)
        return Reconciled.UNKNOWN, f"the reconcile function answered with a {type(answer).__name__}; expected one of {expected}"


@final
class _LookingOn:
    """Implements `ContextServices` for a reconcile function: it may look, and say nothing but its answer."""

    def effect(self, kind: str, target: str, shield: bool, undo: Undo | UndoFunction | None) -> EffectScope:  # noqa: ARG002
        return self._refuse("ctx.effect")

    def run(self, name: str, arguments: Mapping[str, Any]) -> Awaitable[Any]:  # noqa: ARG002
        return self._refuse("ctx.run")

    def follow_up(self, value: JsonValue) -> None:  # noqa: ARG002
        self._refuse("ctx.follow_up")

    def output(self, text: str) -> None:
        """Nobody listens: the call it is about is over."""

    def progress(self, message: str, done: float | None, total: float | None) -> None:
        """Nobody listens."""

    def cleanup(self) -> AbstractContextManager[object]:
        """Its clock cancels it, and then it has a second: no hold is needed, and none is given."""
        return nullcontext()

    def _refuse(self, what: str) -> NoReturn:
        raise LooksOnly(what)
