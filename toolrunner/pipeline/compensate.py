"""Compensation: what a stopped call did is undone, latest act first, where its tool says `compensate="on_abort"`.

No state. It happens once the body and its children are over and `call/ended` is durable, before anything is given back or the
result is published: as long as the call's own locks are held, nobody else has built on what is taken away. After a stop that came
later, in row 10 or behind it, the locks are asked for anew, within a bound.

What a journal shows, in this order, and how a crash in between is to be read: `call/ended`, with the effects as the body left
them; for each effect `effect/unknown`, durable before its undo begins (nobody knows then whether the change is there);
`effect/undone` when its undo was confirmed, else `effect/unknown`, or `effect/applied` if it did nothing, with the error; then
`call/settled`. So the last record of each effect id is the truth about it, also after `call/ended`. Effects of child calls are
told under the run id of the call that undid them, since the child has settled.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import final

import anyio

from toolrunner.abort import AbortController
from toolrunner.effects import OpenUndo
from toolrunner.facts import EffectRecord, EffectStage
from toolrunner.pipeline.bodies import TORN_DOWN
from toolrunner.pipeline.durable import journal_problem
from toolrunner.pipeline.jobs import end_jobs
from toolrunner.pipeline.leases import Lease, Needs, WouldDeadlock
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.pipeline.undoing import UndoRun
from toolrunner.results import Ended
from toolrunner.tools import Compensate, Resource, ResourceMode

LOCKS_WAIT = 10.0
"""Seconds to wait for locks that the call holds no more. Whoever has them may go on for hours; the result says what stands."""


async def compensate(state: ActiveCall, services: Services) -> None:
    """Undo what can be undone of a call that was stopped; for any other call, and the second time, it does nothing."""
    if not _is_due(state):
        return
    if state.jobs:
        await end_jobs(state)  # what still writes would write over it
    await _Compensation(state, services).run()


def _is_due(state: ActiveCall) -> bool:
    """An abort or a time limit reached it after it had started and before its result was published. A failure is no abort.

    A body that still runs, or was lost sight of, may be at work on the very thing; what it did stands and is told.
    """
    tool = state.registration.tool if state.registration is not None else None
    return (
        tool is not None
        and tool.compensate is Compensate.ON_ABORT
        and state.started
        and state.cause is not None
        and state.end is not None
        and state.end.ended is not Ended.LOST
        and _may_go_on(state)
        and bool(state.ledger.undoable())
    )


def _may_go_on(state: ActiveCall) -> bool:
    """Not after its result was published: that has told what stands."""
    return state.result is None and not state.left_running


@final
class _Compensation:
    """One call's, from the first undo to the last. `_lease` is what it asked for itself."""

    def __init__(self, state: ActiveCall, services: Services) -> None:
        self._state, self._services = state, services
        self._lease: Lease | None = None
        self._problem: str | None = None
        """Why no more undos are begun."""
        self._left: list[UndoRun] = []

    async def run(self) -> None:
        state = self._state
        # Watched folders of others: whoever scans them meanwhile must not take an undo's writes for its own call's.
        writer = self._services.watches.writer_active()
        try:
            await self._take_locks()
            for due in state.ledger.undoable():
                await self._one(due)
            self._clear_doubts()
        finally:
            writer.close()
            self._give_back()

    async def _take_locks(self) -> None:
        state = self._state
        held = state.lease if state.lease is not None and not state.lease.released else None
        needs = merged((*(() if held is not None else state.resources), *state.undo_resources))
        if not needs:
            return
        above = held or (state.parent.lease if state.parent is not None else None)
        names = ", ".join(resource.key for resource in needs)
        problem = f"another call uses {names}, and did for {LOCKS_WAIT:g} s"
        try:
            with anyio.move_on_after(LOCKS_WAIT, shield=True):
                self._lease = await self._services.leases.ask(Needs(needs), AbortController().signal, above)
        except WouldDeadlock:
            problem = f"another call uses {names}, and itself waits for this one"
        except anyio.get_cancelled_exc_class():  # natively: no time to wait
            problem = TORN_DOWN.text
        if self._lease is None:
            self._problem = problem

    async def _one(self, due: OpenUndo) -> None:
        state, effect = self._state, due.effect
        if not _may_go_on(state):
            return
        if self._problem is None:
            self._problem = await self._announced(effect)
            if self._problem is None and not _may_go_on(state):  # while that was on its way to disk
                self._problem = "the result was published meanwhile"
        if self._problem is not None:
            # What was planned and not told to be applied is unknown by now, whatever it was called while its body ran.
            stage = EffectStage.APPLIED if effect.stage is EffectStage.APPLIED else EffectStage.UNKNOWN
            state.ledger.end_undo(effect.effect_id, stage, f"not undone: {self._problem}")
            return
        undo = UndoRun(state, self._services, due)
        state.undos_running = (*state.undos_running, undo.running)
        await undo.run()
        if undo.is_left:
            self._left.append(undo)
            self._problem = f"the undo of {effect.target} is still running"
            state.ledger.end_undo(effect.effect_id, undo.stage, undo.error)
        else:
            self._is_over(undo)
        if undo.fatal is not None and state.end is not None and state.end.fatal is None:
            state.end = replace(state.end, fatal=undo.fatal)

    async def _announced(self, effect: EffectRecord) -> str | None:
        """Have it durable that nobody knows any more whether the change is there; None, or why that could not be written.

        An undo that nobody could record must not happen: the journal would go on to say that the change was made.
        """
        problem: str | None = TORN_DOWN.text
        try:
            with anyio.CancelScope(shield=True):
                pending = self._state.ledger.begin_undo(effect.effect_id)
                problem = await journal_problem(self._state, self._services, pending)
        except anyio.get_cancelled_exc_class():
            pass
        except Exception as error:  # noqa: BLE001 - the journal's own
            problem = str(error)
        return None if problem is None else f"it could not be recorded: {problem}"

    def _clear_doubts(self) -> None:
        """A child that was stopped counts as done in part as long as any of its own records stands."""
        records = {record.effect_id: record for record in self._state.ledger.records}
        gone = (EffectStage.UNDONE, EffectStage.NOT_APPLIED)
        for doubt, ids in self._state.doubts.items():
            if all(records[one].stage in gone for one in ids):
                self._state.ledger.forget(doubt)

    def _is_over(self, undo: UndoRun) -> None:
        state = self._state
        state.undos_running = tuple(one for one in state.undos_running if one is not undo.running)
        state.ledger.end_undo(undo.effect_id, undo.stage, undo.error)

    def _give_back(self) -> None:
        """Locks stay where an undo that was left is still at work; whoever waits for its end gives them back."""
        state = self._state
        held = [lease for lease in (self._lease, state.lease) if lease is not None]
        if not self._left:
            if self._lease is not None:
                self._lease.release()
            return
        state.lease = None  # not its call's to give back any more

        async def watch() -> None:
            for undo in self._left:
                await undo.wait_ended()
                self._is_over(undo)  # mostly too late for the result, but not for the journal
            for lease in held:
                lease.release()

        self._services.root.spawn(watch, f"undo of {state.name}", foreign=True)


def merged(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """One entry per key, sorted; a key that is also written to counts as written."""
    modes: dict[str, ResourceMode] = {}
    for one in resources:
        if modes.get(one.key) is not ResourceMode.WRITE:
            modes[one.key] = ResourceMode(one.mode)
    return tuple(Resource(key, modes[key]) for key in sorted(modes))
