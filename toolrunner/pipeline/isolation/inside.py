"""What a body in a worker may ask of its runner: everything is sent to the host and done there.

State: answers of the host that somebody here waits for. Changed on the worker's loop only; `Inbox` posts there.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NoReturn, final

import anyio
from pydantic import JsonValue

from toolrunner.effects import EffectLedger, EffectScope, Undo, UndoFunction
from toolrunner.errors import RunnerClosed, ToolrunnerError
from toolrunner.facts.frozen import freeze, freeze_arguments
from toolrunner.facts.texts import well_formed
from toolrunner.pipeline.cleanup import cleanup
from toolrunner.pipeline.isolation.messages import (
    ChildCall,
    ChildResult,
    EffectEnd,
    EffectPlan,
    FollowUp,
    FromWorker,
    Planned,
    Say,
    Step,
)
from toolrunner.records import EffectApplied, EffectNotApplied, EffectPlanned, EffectUnknown
from toolrunner.results import ToolResult


class NotInWorker(ToolrunnerError):
    """An isolated body used something that stays in the runner's own process."""

    def __init__(self, what: str) -> None:
        advice = 'pass what the tool needs as arguments, or drop isolation="process"'
        super().__init__(f"{what} is not there in a worker process; {advice}")


@final
class NoDeps:
    """In the place of `ctx.deps`: whatever is asked of it raises `NotInWorker`."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise NotInWorker("ctx.deps")

    __call__ = __getattr__ = __getitem__ = __iter__ = __len__ = __bool__ = __enter__ = __aenter__ = _refuse


class Refused(ToolrunnerError):
    """The host could not do what the body asked for; the text is the host's."""


@final
class Hosted:
    """Implements `ContextServices` in the worker. `ledger` is told of its runner by `attach`."""

    def __init__(self, run_id: str, send: Callable[[FromWorker], None], loop_call: Any) -> None:
        self._send = send
        self.ledger = EffectLedger(run_id, self._append, loop_call=loop_call)
        self._plans: dict[str, _Pending] = {}
        self._children: dict[int, _Pending] = {}
        self._closed: str | None = None

    # What the body asks for.

    def effect(self, kind: str, target: str, shield: bool, undo: Undo | UndoFunction | None) -> EffectScope:
        """An effect of the body. Shielded, it holds the cancel back; the kill after the grace it cannot.

        Raises `NotInWorker` for an undo: this process is gone when the time for it has come.
        """
        if undo is not None:
            raise NotInWorker("undo=")
        return self.ledger.declare(kind, target, shield=shield)

    def run(self, name: str, arguments: Mapping[str, Any]) -> Awaitable[ToolResult]:
        """A child call, made by the host."""
        number = len(self._children)
        self._children[number] = pending = _Pending(self._closed)
        self._send(ChildCall(number, name, freeze_arguments(arguments)))
        return pending.child()

    def output(self, text: str) -> None:
        """Show a chunk to observers."""
        self._send(Say(well_formed(str(text))))

    def progress(self, message: str, done: float | None, total: float | None) -> None:
        """Show how far the body is."""
        self._send(Step(well_formed(str(message)), done, total))

    def follow_up(self, value: JsonValue) -> None:
        """Keep a value for the result. Raises `FreezeError` for what JSON cannot say."""
        self._send(FollowUp(freeze(value, "follow_up")))

    def cleanup(self) -> AbstractContextManager[object]:
        """Hold the cancel back for the block; the kill after the grace it cannot."""
        return cleanup(self.ledger)

    # What the host says.

    def take(self, message: Planned | ChildResult) -> None:
        """An answer of the host. On the loop."""
        if isinstance(message, ChildResult):
            self._children[message.number].settle(message.result, message.error)
        elif message.effect in self._plans:
            self._plans.pop(message.effect).settle(None, message.error)

    def close(self, why: str) -> None:
        """There will be no more answers: whoever waits for one is told so, and an effect that waits is not begun."""
        self._closed = why
        for pending in (*self._plans.values(), *self._children.values()):
            pending.settle(None, why)

    def _append(self, record: EffectPlanned | EffectApplied | EffectUnknown | EffectNotApplied) -> Awaitable[None] | None:
        """The ledger's journal: the host's. A plan is waited for, an end is not."""
        effect = record.effect
        if isinstance(record, EffectPlanned):
            if self._closed is not None:
                raise RunnerClosed(self._closed)
            pending = self._plans[effect.effect_id] = _Pending(None)
            self._send(EffectPlan(effect.effect_id, well_formed(effect.kind), well_formed(effect.target)))
            return pending.plan()
        receipt = None if effect.receipt is None else well_formed(str(effect.receipt))
        error = None if effect.error is None else well_formed(effect.error)
        self._send(EffectEnd(effect.effect_id, effect.stage, receipt, error))  # type: ignore[arg-type]  # PLANNED is handled above
        return None


@final
class _Pending:
    """One answer that is waited for."""

    def __init__(self, closed: str | None) -> None:
        self._done = anyio.Event()
        self._result: ToolResult | None = None
        self._error: str | None = None
        if closed is not None:
            self.settle(None, closed)

    def settle(self, result: ToolResult | None, error: str | None) -> None:
        if not self._done.is_set():
            self._result, self._error = result, error
            self._done.set()

    async def plan(self) -> None:
        await self._done.wait()
        if self._error is not None:
            raise Refused(self._error)

    async def child(self) -> ToolResult:
        await self._done.wait()
        if self._result is None:
            raise Refused(self._error or "the call gave no result")
        return self._result
