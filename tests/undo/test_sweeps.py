"""An abort before every step of bodies that can be undone, on both loops: nothing is claimed that is not so, no crash lies."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from undo.worlds import World, check_every_crash, check_truth, idempotent, tool_of

from toolrunner import Runner, ToolContext, ToolResult, tool
from toolrunner.abort import AbortSignal
from toolrunner.facts import EffectState
from toolrunner.results import Outcome
from toolrunner.testing import abort_sweep, cancel_sweep
from toolrunner.tools import Undo

pytestmark = pytest.mark.anyio

SWEEP_BOUND = 60.0  # a few hundred rounds of a few milliseconds, on a busy machine

Made = Callable[[World], list[Any]]


async def sweep(made: Made, name: str = "write") -> list[tuple[World, ToolResult]]:
    """Every round's world and result, checked."""
    rounds: list[tuple[World, ToolResult]] = []
    worlds: list[World] = []

    async def scenario(signal: AbortSignal) -> ToolResult:
        worlds.append(World())
        async with Runner(made(worlds[-1]), journal=worlds[-1]) as runner:
            return await runner.run(name, signal=signal)

    with anyio.fail_after(SWEEP_BOUND):
        async for one in abort_sweep(scenario):
            check_truth(worlds[-1], one.value)
            check_every_crash(worlds[-1])
            rounds.append((worlds[-1], one.value))
    return rounds


def states(rounds: list[tuple[World, ToolResult]], outcome: Outcome = Outcome.ABORTED) -> set[EffectState]:
    return {result.effects.state for _, result in rounds if result.outcome is outcome and result.started}


async def test_two_acts_are_undone_wherever_the_abort_comes() -> None:
    rounds = await sweep(lambda world: [tool_of(world, "ab", world.undo, shield=True)])
    assert EffectState.REVERTED in states(rounds)
    assert not states(rounds) & {EffectState.COMPLETED, EffectState.PARTIAL}
    for world, result in rounds:
        if result.outcome is Outcome.SUCCEEDED:
            assert world.there == {"a", "b"}
        else:
            assert world.undone == sorted(world.undone, reverse=True)
            assert not world.there  # shielded acts are whole, so all of them are known and undone


async def test_an_act_that_is_cut_in_half_is_not_undone_and_stays_unknown() -> None:
    rounds = await sweep(lambda world: [tool_of(world, "ab", world.undo)])
    assert {EffectState.REVERTED, EffectState.UNKNOWN} <= states(rounds)


async def test_an_undo_that_copes_with_half_an_act_is_run_for_it_too() -> None:
    rounds = await sweep(lambda world: [tool_of(world, "ab", _when_unknown(world))])
    for world, result in rounds:
        if result.started and result.outcome is Outcome.ABORTED:
            assert not world.there
            assert result.effects.state is (EffectState.REVERTED if result.effects.records else EffectState.UNKNOWN)


def _when_unknown(world: World) -> Any:
    return Undo(world.undo, when_unknown=True)


async def test_one_that_cannot_be_undone_leaves_a_part() -> None:
    rounds = await sweep(lambda world: [tool_of(world, "ab", {"a": world.undo, "b": None}, shield=True)])
    assert EffectState.PARTIAL in states(rounds)


@pytest.mark.parametrize("broken", ["undo_broken", "undo_half", "undo_nothing"])
async def test_an_undo_that_fails_is_never_told_as_done(broken: str) -> None:
    rounds = await sweep(lambda world: [tool_of(world, "ab", {"a": world.undo, "b": getattr(world, broken)}, shield=True)])
    expected = EffectState.PARTIAL if broken == "undo_nothing" else EffectState.UNKNOWN
    assert expected in states(rounds)
    for _, result in rounds:
        if result.started and result.outcome is Outcome.ABORTED and any(one.target == "b" for one in result.effects.records):
            assert result.effects.state is expected


async def test_the_acts_of_children_are_undone_with_their_parents_own_in_one_order() -> None:
    def made(world: World) -> list[Any]:
        @tool(compensate="on_abort")
        async def parent(ctx: ToolContext[Any]) -> str:
            for name, target in (("child", "b"), ("other", "d")):
                async with ctx.effect("test", {"b": "a", "d": "c"}[target], undo=world.undo, shield=True):
                    world.make({"b": "a", "d": "c"}[target])
                await ctx.run(name)
            return "done"

        child = tool_of(world, "b", world.undo, name="child", shield=True, compensate=None)
        return [parent, child, tool_of(world, "d", world.undo, name="other", shield=True)]

    rounds = await sweep(made, "parent")
    assert EffectState.REVERTED in states(rounds)
    for world, result in rounds:
        if result.started and result.outcome is Outcome.ABORTED:
            assert not world.there
            assert world.undone == sorted(world.undone, reverse=True)


@pytest.mark.parametrize("native", [False, True])
async def test_the_cancellation_of_the_host_undoes_too_and_no_step_of_it_is_lost(native: bool) -> None:
    worlds: list[World] = []

    async def scenario() -> None:
        worlds.append(World())
        async with Runner([tool_of(worlds[-1], "ab", worlds[-1].undo, shield=True)], journal=worlds[-1]) as runner:
            await runner.run("write")

    with anyio.fail_after(SWEEP_BOUND):
        async for _ in cancel_sweep(scenario, native=native):
            world = worlds[-1]
            check_every_crash(world)
            for record in world.records:
                if record.type == "call/settled":
                    check_truth(world, record.result)
                    if record.result.outcome is not Outcome.SUCCEEDED:
                        assert not world.there


UNDOS = ("undo", "undo_broken", "undo_half", "undo_nothing", "undo_in_thread")


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(UNDOS), st.booleans()), min_size=1, max_size=3), st.booleans(), st.integers(1, 60))
async def test_reverted_is_said_only_when_every_undo_was_confirmed(
    undos: list[tuple[str, bool]], shield: bool, step: int
) -> None:
    worlds: list[World] = []

    async def scenario(signal: AbortSignal) -> ToolResult:
        world = World()
        worlds.append(world)
        how = {
            str(n): idempotent(getattr(world, name)) if again else getattr(world, name) for n, (name, again) in enumerate(undos)
        }
        async with Runner([tool_of(world, list(how), how, shield=shield)], journal=world) as runner:
            return await runner.run("write", signal=signal)

    with anyio.fail_after(SWEEP_BOUND):
        async for one in abort_sweep(scenario, stride=step):
            check_truth(worlds[-1], one.value)
            check_every_crash(worlds[-1])
