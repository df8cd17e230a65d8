"""The effects of one call, as its body, hooks and wrappers declare them around their acts.

State: the call's EffectRecords in the order in which they were planned, and who waits for the last shielded effect to end.
Changed by the ledger's own sync methods, on the runner's loop only; a body in a worker thread has its change made there.
"""

import contextvars
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar, final

from toolrunner.effects.scope import DURABLE_WAIT, Declared, EffectScope, error_text
from toolrunner.effects.undo import OpenUndo, Undo, UndoFunction, Undos, as_undo
from toolrunner.errors import ConfigError, RunnerClosed
from toolrunner.facts import EffectRecord, EffectStage
from toolrunner.facts.effects import AROUND
from toolrunner.facts.texts import well_formed
from toolrunner.loops import LoopCall, spawn_detached
from toolrunner.records import EffectApplied, EffectNotApplied, EffectPlanned, EffectUndone, EffectUnknown

_logger = logging.getLogger("toolrunner")
_T = TypeVar("_T")

_RECORDS = {
    EffectStage.PLANNED: EffectPlanned,
    EffectStage.APPLIED: EffectApplied,
    EffectStage.UNKNOWN: EffectUnknown,
    EffectStage.NOT_APPLIED: EffectNotApplied,
    EffectStage.UNDONE: EffectUndone,
}

BEING_UNDONE = "its undo was begun"
"""The `error` of an effect whose undo is under way, and stays if nobody lives to see the end of it."""


@final
class EffectLedger:
    """One per call, made on the runner's loop. `append` is the journal's (sync, in order; something to await, or None)."""

    def __init__(self, run_id: str, append: Callable[..., Awaitable[None] | None], *, loop_call: LoopCall | None = None) -> None:
        self._run_id = run_id
        self._append = append
        self._loop_call = loop_call
        self._loop_thread = threading.get_ident()
        self._records: dict[str, EffectRecord] = {}
        self._planned = 0
        self._undos = Undos()
        self._shields = 0
        self._waiting: list[Callable[[], object]] = []

    @property
    def records(self) -> tuple[EffectRecord, ...]:
        """All effects so far, each in its latest stage, in the order in which they were planned."""
        return tuple(self._records.values())

    @property
    def count(self) -> int:
        """How many effects there are so far."""
        return len(self._records)

    def declare(
        self,
        kind: str,
        target: str,
        *,
        shield: bool = False,
        owner: str | None = None,
        undo: Undo | UndoFunction | None = None,
    ) -> EffectScope:
        """An effect that is about to be made; use it with `async with`, or with `with` in a sync body.

        `owner` is None for the body, `hook:NAME` or `wrapper:NAME` for what stands around it (ConfigError otherwise). With
        `shield` the block is not cancelled from outside; see `after_shields`. `undo` takes the change back (see `Undo`).
        """
        if owner is not None and not owner.startswith(AROUND):
            raise ConfigError("the owner of an effect", owner, "hook:NAME or wrapper:NAME")
        return EffectScope(self, Declared(kind, target, owner, as_undo(undo)), shield=shield)

    def roll_up(self, records: Iterable[EffectRecord], *, owner: str | None = None) -> None:
        """Take a child call's records as well. `owner` is the child's run id; it stands on those that name nobody yet.

        They are not journalled again: the journal has them under the child's own run id.
        """
        for record in records:
            self._records[record.effect_id] = record if record.owner or owner is None else replace(record, owner=owner)

    def forget(self, effect_id: str) -> None:
        """Take out a rolled-up record that stood for what nobody knew, once it is known."""
        self._records.pop(effect_id, None)

    @property
    def shielded(self) -> bool:
        """Whether a block with `shield=True` is running."""
        return self._shields > 0

    def after_shields(self, fn: Callable[[], object]) -> None:
        """Call `fn` now, or when the last shielded block has been left.

        This is how a stop must be delivered to the body: a native `task.cancel()` on asyncio pierces an anyio shield, so while
        one is held the cancel is kept back for the body as a whole.
        """
        if self._shields:
            self._waiting.append(fn)
        else:
            fn()

    def plan(self, declared: Declared) -> tuple[str, Awaitable[None] | None]:
        """For scopes: record an effect before its act. Returns its id and what to await until the plan is durable."""
        self._planned += 1
        kind, target = well_formed(str(declared.kind)), well_formed(str(declared.target))  # often the name of a file, or a Path
        effect = EffectRecord(f"{self._run_id}/{self._planned}", kind, target, EffectStage.PLANNED, owner=declared.owner)
        self._records[effect.effect_id] = effect
        if declared.undo is not None:
            self._undos.keep(effect.effect_id, declared.undo)
        try:
            return effect.effect_id, self._append(EffectPlanned(run_id=self._run_id, effect=effect))
        except BaseException as error:
            self.withdraw(effect.effect_id, error)
            raise

    def withdraw(self, effect_id: str, error: BaseException) -> None:
        """For scopes: the block was never entered, so the act did not happen."""
        self.close(effect_id, EffectStage.NOT_APPLIED, error=f"not begun: {error_text(error)}")

    def close(self, effect_id: str, stage: EffectStage, *, receipt: str | None = None, error: str | None = None) -> None:
        """For scopes: how the block was left."""
        self._records[effect_id] = replace(self._records[effect_id], receipt=receipt)
        self._undos.acted(effect_id)
        self._tell(effect_id, stage, error)

    def _tell(self, effect_id: str, stage: EffectStage, error: str | None) -> None:
        effect = self._records[effect_id] = replace(self._records[effect_id], stage=stage, error=error)
        try:
            # Not waited for: until it is durable the journal says "planned", which is read as unknown and claims nothing.
            self._append(_RECORDS[stage](run_id=self._run_id, effect=effect))
        except Exception:  # the act is over; telling its body that it failed would be the lie that records are there to prevent
            _logger.exception("the end of effect %s could not be recorded", effect_id)

    # Undoing; only after the body is over. Effects of children are told under this call's run id: it is this call's doing, and
    # the child has settled. Whoever reads the journal finds an effect by its id.

    def undoable(self) -> tuple[OpenUndo, ...]:
        """The effects that can be undone and were not tried yet, the latest act first."""
        known = ((self._records[effect_id], undo) for effect_id, undo in self._undos.latest_first())
        return tuple(OpenUndo(effect, undo) for effect, undo in known if undo.covers(effect.stage))

    def adopt_undos(self, child: "EffectLedger") -> None:
        """What a child call could have undone, its parent can from now on. After `roll_up`."""
        self._undos.adopt(child._undos)  # noqa: SLF001 - a ledger of the same runner

    def begin_undo(self, effect_id: str) -> Awaitable[None] | None:
        """Its undo is about to run: returns what to await first. From here on nobody knows whether the change is there.

        That is recorded as `unknown` *before* the undo, so that a crash in the middle of it is read as what it is. The same
        record may say later that it was not begun (`end_undo` with the stage it had).
        """
        effect = replace(self._records[effect_id], stage=EffectStage.UNKNOWN, error=BEING_UNDONE)
        self._undos.drop(effect_id)
        pending = self._append(EffectUnknown(run_id=self._run_id, effect=effect))
        self._records[effect_id] = effect
        return pending

    def end_undo(self, effect_id: str, stage: EffectStage, error: str | None = None) -> None:
        """What became of it: `undone`, `unknown`, or the stage that the effect had, when the undo proved to have done nothing."""
        self._undos.drop(effect_id)
        self._tell(effect_id, stage, error)

    def shield(self, change: int) -> None:
        """For scopes: a shielded block was entered (+1) or left (-1)."""
        self._shields += change
        if not self._shields:
            waiting, self._waiting = self._waiting, []
            for fn in waiting:
                fn()

    def on_loop(self, fn: Callable[[], _T]) -> _T:
        """For scopes: run `fn` on the loop, whichever thread this is, and wait for it."""
        if threading.get_ident() == self._loop_thread:
            return fn()
        if self._loop_call is None:
            where = threading.current_thread().name
            raise ConfigError("the thread of an effect", where, "the runner's loop, or a worker thread of the runner's own")
        return self._loop_call(fn)

    def plan_blocking(self, declared: Declared) -> str:
        """As `plan`, from a `with`: waits in the worker's thread until the plan is durable."""
        on_the_loop = threading.get_ident() == self._loop_thread
        done: Future[None] = Future()

        def plan() -> str:
            effect_id, durable = self.plan(declared)
            if durable is None:
                done.set_result(None)
            elif on_the_loop:
                expected = "async with, which can wait for the journal; a loop cannot"
                done.set_exception(ConfigError("a plain with around an effect on the event loop", declared.target, expected))
            else:
                spawn_detached(lambda: _wait_for_thread(durable, done), f"effect {effect_id}", contextvars.copy_context())
            return effect_id

        effect_id = self.on_loop(plan)
        try:
            done.result(DURABLE_WAIT)
        except BaseException as error:
            refused = error
            self.on_loop(lambda: self.withdraw(effect_id, refused))
            raise
        return effect_id


async def _wait_for_thread(durable: Awaitable[None], done: Future[None]) -> None:
    """Wait on the loop for a thread. Its own cancellation is the loop's tear-down."""
    try:
        await durable
    except Exception as error:  # noqa: BLE001  whatever it is, it belongs to the thread that waits
        done.set_exception(error)
    except BaseException:  # noqa: BLE001  the task ends here anyway, and the thread is told why
        done.set_exception(RunnerClosed("its event loop ended"))
    else:
        done.set_result(None)
