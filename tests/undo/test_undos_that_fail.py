"""An undo that fails, does nothing or hangs: what is known of its effect, and when it is tried again."""

from typing import Any

import anyio
import pytest
from undo.worlds import World, errors, stages, stopped, writer

from toolrunner import ToolContext, tool
from toolrunner.facts import EffectState
from toolrunner.pipeline import undoing
from toolrunner.results import Retry, plain_text
from toolrunner.tools import Undo, Undoing

pytestmark = pytest.mark.anyio


async def test_an_undo_that_fails_leaves_unknown_and_its_error_is_kept() -> None:
    world = World()
    result = await stopped(world, [writer(world, world.undo_half)])
    assert (result.effects.state, stages(result)) == (EffectState.UNKNOWN, [("a", "unknown"), ("b", "unknown")])
    assert errors(result) == ["its undo failed: OSError: the answer was lost"] * 2
    assert result.retry is Retry.CHECK_FIRST


async def test_an_undo_that_says_it_did_nothing_leaves_a_part() -> None:
    world = World()

    async def undo(effect: Undoing) -> None:
        if effect.target == "b":
            effect.not_applied()
            raise OSError("b is locked")
        world.unmake(effect.target)

    result = await stopped(world, [writer(world, undo)])
    assert (result.effects.state, stages(result)) == (EffectState.PARTIAL, [("a", "undone"), ("b", "applied")])
    assert errors(result) == [None, "its undo failed: OSError: b is locked"]
    told = plain_text(result.content_for_model())
    assert "At least part of its changes were made: b" in told
    assert "Undone: a." in told


async def test_one_that_has_no_undo_stays() -> None:
    world = World()
    result = await stopped(world, [writer(world, None)])
    assert (result.effects.state, stages(result)) == (EffectState.PARTIAL, [("a", "applied"), ("b", "applied")])


@pytest.mark.parametrize("again, tries", [(False, 1), (True, 3)])
async def test_only_an_undo_that_may_be_repeated_is_tried_again(again: bool, tries: int) -> None:
    world, tried = World(), list[str]()

    async def undo(effect: Undoing) -> None:
        tried.append(effect.target)
        raise OSError("in use")

    result = await stopped(world, [writer(world, Undo(undo, idempotent=again), "a")])
    assert (tried, result.effects.state) == (["a"] * tries, EffectState.UNKNOWN)


async def test_a_second_try_that_works_is_a_confirmed_undo() -> None:
    world, tried = World(), list[str]()

    async def undo(effect: Undoing) -> None:
        tried.append(effect.target)
        if len(tried) < 3:
            raise OSError("in use")
        world.unmake(effect.target)

    result = await stopped(world, [writer(world, Undo(undo, idempotent=True), "a")])
    assert (len(tried), result.effects.state) == (3, EffectState.REVERTED)


async def test_a_try_that_did_nothing_after_one_that_failed_proves_nothing() -> None:
    world, tried = World(), list[str]()

    async def undo(effect: Undoing) -> None:
        tried.append(effect.target)
        if len(tried) == 1:
            raise OSError("half-way")
        effect.not_applied()

    result = await stopped(world, [writer(world, Undo(undo, idempotent=True), "a")])
    assert (len(tried), result.effects.state) == (2, EffectState.UNKNOWN)


@pytest.mark.parametrize("when_unknown", [False, True])
async def test_an_act_of_which_nobody_knows_is_undone_only_by_an_undo_that_copes_with_it(when_unknown: bool) -> None:
    world = World()
    how = Undo(world.undo, when_unknown=when_unknown)

    @tool(compensate="on_abort")
    async def write(ctx: ToolContext[Any]) -> None:
        async with ctx.effect("test", "a", undo=how):
            world.make("a")
            await anyio.sleep_forever()

    result = await stopped(world, [write])
    assert result.effects.state is (EffectState.REVERTED if when_unknown else EffectState.UNKNOWN)
    assert world.there == (set() if when_unknown else {"a"})


async def test_an_undo_that_hangs_is_cancelled_after_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undoing, "UNDO_LIMIT", 0.02)
    world, cleaned = World(), list[str]()

    async def undo(effect: Undoing) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cleaned.append(effect.target)

    result = await stopped(world, [writer(world, undo)])
    assert (cleaned, result.effects.state, result.still_running) == (["b", "a"], EffectState.UNKNOWN, ())
    assert errors(result) == ["its undo did not end within 0.02 s"] * 2
