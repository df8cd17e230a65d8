"""A world that tools really change, what its journal may say of it whenever its host could die, and calls stopped in it."""

from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from toolrunner import AbortController, Runner, ToolCall
from toolrunner.effects.ledger import BEING_UNDONE
from toolrunner.facts import EffectStage, EffectState
from toolrunner.records import Record
from toolrunner.results import ToolResult
from toolrunner.testing import Gate
from toolrunner.tools import ToolContext, Undo, Undoing, tool

BOUND = 10.0
GONE = (EffectStage.UNDONE, EffectStage.NOT_APPLIED)


@dataclass(eq=False)
class World:
    """`there` is what is really there. It is the journal too: `events` has records and changes in the order of their truth."""

    there: set[str] = field(default_factory=set)
    undone: list[str] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    error: str | None = None

    def make(self, target: str) -> None:
        self.there.add(target)
        self.events.append(frozenset(self.there))

    def unmake(self, target: str) -> None:
        self.there.discard(target)
        self.undone.append(target)
        self.events.append(frozenset(self.there))

    # Journal.

    def append(self, *records: Record) -> Awaitable[None] | None:
        self.events += [record for record in records if not record.transient]
        return None

    async def aclose(self) -> None:
        pass

    @property
    def records(self) -> list[Any]:
        return [event for event in self.events if not isinstance(event, frozenset)]

    # Undos.

    async def undo(self, effect: Undoing) -> None:
        await checkpoint()
        self.unmake(effect.target)
        await checkpoint()

    async def undo_broken(self, effect: Undoing) -> None:
        await checkpoint()
        raise OSError(f"{effect.target} is in use")

    async def undo_half(self, effect: Undoing) -> None:
        await checkpoint()
        self.unmake(effect.target)
        raise OSError("the answer was lost")

    async def undo_nothing(self, effect: Undoing) -> None:
        await checkpoint()
        effect.not_applied()

    def undo_in_thread(self, effect: Undoing) -> None:
        self.unmake(effect.target)


def tool_of(world: World, targets: Iterable[str], undo: Any, *, name: str = "write", shield: bool = False, **options: Any) -> Any:
    """A tool that makes its targets one after the other, with a pause around each act."""

    @tool(**{"name": name, "compensate": "on_abort", **options})
    async def write(ctx: ToolContext[Any]) -> str:
        for target in targets:
            await checkpoint()
            how = undo.get(target) if isinstance(undo, dict) else undo
            async with ctx.effect("test", target, undo=how, shield=shield) as effect:
                await checkpoint()
                world.make(target)
                effect.receipt = f"made {target}"
                await checkpoint()
        await checkpoint()
        return "done"

    return write


def check_truth(world: World, result: ToolResult) -> None:
    """The result claims nothing that is not so."""
    effects = result.effects
    for record in effects.records:
        if record.kind == "test":
            if record.stage is EffectStage.APPLIED:
                assert record.target in world.there, record
            if record.stage in GONE:
                assert record.target not in world.there, record
    if effects.state in (EffectState.NONE, EffectState.REVERTED):
        assert not world.there, effects
    if effects.state is EffectState.REVERTED:
        assert any(record.stage is EffectStage.UNDONE for record in effects.records)
        assert all(record.stage in GONE for record in effects.records)
        confirmed = {record.effect.effect_id for record in world.records if record.type == "effect/undone"}
        assert {record.effect_id for record in effects.records if record.stage is EffectStage.UNDONE} <= confirmed


def is_waited_for(event: Any) -> bool:
    """Whether nothing goes on before this record is on disk."""
    if isinstance(event, frozenset):
        return False
    if event.type == "effect/unknown":
        return bool(event.effect.error == BEING_UNDONE)
    return event.type in ("call/dispatched", "effect/planned", "call/ended")


def check_every_crash(world: World) -> None:
    """Whatever the host had written when it died, and however much more of the rest was not on disk yet: it claims what is so.

    A record that nobody waits for may be lost with all after it, while the world went on up to the next one that is waited for.
    """
    for cut in range(len(world.events) + 1):
        last: dict[str, Any] = {}
        for event in world.events[:cut]:
            if not isinstance(event, frozenset) and event.type.startswith("effect/"):
                last[event.effect.effect_id] = event.effect
        for there in _worlds_at(world.events, cut):
            for effect in last.values():
                if effect.stage is EffectStage.APPLIED:
                    assert effect.target in there, (cut, effect, there)
                if effect.stage in GONE:
                    assert effect.target not in there, (cut, effect, there)


def _worlds_at(events: list[Any], cut: int) -> list[frozenset[str]]:
    before: list[frozenset[str]] = [event for event in events[:cut] if isinstance(event, frozenset)]
    worlds = [before[-1] if before else frozenset[str]()]
    for event in events[cut:]:
        if is_waited_for(event):
            break
        if isinstance(event, frozenset):
            worlds.append(event)
    return worlds


def idempotent(fn: Any) -> Undo:
    return Undo(fn, idempotent=True)


def writer(world: World, undo: Any, targets: str = "ab", gate: Gate | None = None, **options: Any) -> Any:
    """A tool that makes its targets and then waits to be stopped, or at a gate."""

    @tool(**{"compensate": "on_abort", **options})
    async def write(ctx: ToolContext[Any]) -> str:
        for target in targets:
            async with ctx.effect("test", target, undo=undo) as effect:
                world.make(target)
                effect.receipt = f"made {target}"
        await (gate.wait() if gate is not None else anyio.sleep_forever())
        return "done"

    return write


async def stopped(world: World, tools: list[Any], name: str = "write", **settings: Any) -> ToolResult:
    """The result of a call that is aborted once it has nothing left to do."""
    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner(tools, journal=world, **settings) as runner:
            batch = runner.start_batch([ToolCall(name)], signal=stop.signal)
            await anyio.wait_all_tasks_blocked()
            stop.abort("enough")
            [result] = await batch.results()
    check_truth(world, result)
    check_every_crash(world)
    return result


def stages(result: ToolResult) -> list[tuple[str, str]]:
    return [(one.target, str(one.stage)) for one in result.effects.records]


def errors(result: ToolResult) -> list[str | None]:
    return [one.error for one in result.effects.records]
