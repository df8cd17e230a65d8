"""Registry: one call that belongs to no batch, and the child calls that bodies make.

State: none of its own; a call's is its ActiveCall, the runner's its Services. A call runs in a task that the runner owns, so
nobody who merely waits for its result can pierce it.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, final

from toolrunner.abort import AbortSignal
from toolrunner.calls import ToolCall
from toolrunner.errors import CallOver
from toolrunner.facts import EffectRecord, EffectStage, EffectState, Evidence, Source
from toolrunner.pipeline.act import FreePermit
from toolrunner.pipeline.course import accept, settle, until_over
from toolrunner.pipeline.finish import joined, publish
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.results import ToolResult

_logger = logging.getLogger("toolrunner")


async def run_one(state: ActiveCall, services: Services) -> ToolResult:
    """An accepted call that belongs to no batch, through rows 1 to 12."""
    await until_over(state, services, FreePermit())
    return await settle(state, services)


@final
class ChildCalls:
    """`ctx.run`: calls made inside a body. The parent's merged signal, its locks, none of its pool.

    `keep` and `attach`, `settled` and `detach` are told of each child, so that it is found and heard of like any call.
    """

    def __init__(
        self,
        services: Callable[[], Services],
        *,
        keep: Callable[[ActiveCall], object],
        settled: Callable[[ActiveCall], object],
        adopt: Callable[[str, str], AbortSignal | None],
        detach: Callable[[str], object],
    ) -> None:
        self._services = services
        self._keep = keep
        self._settled = settled
        self._adopt = adopt
        self._detach = detach

    async def run(self, parent: ActiveCall, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run one child and wait for it. A cancelled parent stops waiting; it does not end before the child does.

        A KeyboardInterrupt or SystemExit out of the child's body goes on through its parent's, so that it reaches the host.
        Raises `CallOver` when the parent's body is over: a task that it left behind makes no calls in its name.
        """
        if not parent.takes_children:
            raise CallOver(parent.name)
        services = self._services()
        state = accept(
            ToolCall(name, arguments),
            services,
            parent.body_signal.named(Source.PARENT),
            parent.stop_batch,
            deps=parent.deps,
            parent=parent,
            attach=lambda run_id: self._adopt(run_id, parent.run_id),
        )
        parent.children.add(state)
        self._keep(state)

        async def live() -> None:
            try:
                await run_one(state, services)
            except Exception:  # closed truthfully; the parent reads it in the result
                _logger.exception("child call %s of %s broke off", state.run_id, parent.run_id)
            finally:
                publish(state, services)
                _roll_up(parent, state)
                self._settled(state)
                self._detach(state.run_id)

        services.root.spawn(live, f"call {name}")
        await state.settled.wait()
        if state.end is not None and state.end.fatal is not None:
            raise state.end.fatal
        assert state.result is not None
        return state.result


def _roll_up(parent: ActiveCall, child: ActiveCall) -> None:
    """A child's effects, and what it left running, are its parent's too."""
    parent.children.discard(child)
    result = child.result
    assert result is not None
    parent.ledger.roll_up(result.effects.records, owner=child.run_id)
    if not child.left_running:  # what its body still works on is nobody's to undo
        parent.ledger.adopt_undos(child.ledger)
        parent.undo_resources += (*child.resources, *child.undo_resources)
    # A child that is only assumed to have changed something leaves no record; its parent's own end is judged the same way, unless
    # the parent is declared to change nothing, which its child then contradicts.
    tool = parent.registration.tool if parent.registration is not None else None
    unrecorded = result.effects.state is EffectState.COMPLETED and not result.effects.records
    contradicted = unrecorded and tool is not None and tool.annotations.read_only
    if contradicted or result.effects.state in (EffectState.UNKNOWN, EffectState.PARTIAL):
        doubt = EffectRecord(f"{child.run_id}/call", "call", child.name, EffectStage.UNKNOWN, owner=child.run_id)
        parent.ledger.roll_up([doubt])
        if result.effects.state is EffectState.PARTIAL:  # undone with the rest, if all that it recorded is
            parent.doubts[doubt.effect_id] = frozenset(
                record.effect_id for record in result.effects.records if not record.is_around
            )
    if result.effects.state is EffectState.COMPLETED and result.effects.evidence is not Evidence.REPORTED:
        parent.silent_children = True
    parent.children_running = joined(parent.children_running, result.still_running)
