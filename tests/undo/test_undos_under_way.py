"""An undo under way: neither an abort nor a close ends it, it is recorded first, and what it raises is not lost."""

from typing import Any

import anyio
import pytest
from undo.worlds import BOUND, World, check_truth, errors, writer

from toolrunner import AbortController, Runner, ToolCall
from toolrunner.facts import EffectState
from toolrunner.testing import Gate
from toolrunner.tools import Undoing

pytestmark = pytest.mark.anyio


async def test_neither_a_second_abort_nor_a_host_that_goes_away_stops_an_undo() -> None:
    world, gate = World(), Gate()

    async def undo(effect: Undoing) -> None:
        await gate.wait()
        world.unmake(effect.target)

    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner([writer(world, undo)], journal=world) as runner:
            host = anyio.CancelScope()

            async def wait() -> None:
                with host:
                    await runner.run("write", signal=stop.signal)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                stop.abort("enough")
                await gate.reached()
                stop.abort("again")
                host.cancel()
                await anyio.wait_all_tasks_blocked()
                assert world.there == {"a", "b"}
                gate.open()
            [result] = [record.result for record in world.records if record.type == "call/settled"]
    assert result.effects.state is EffectState.REVERTED


async def test_closing_the_runner_waits_for_the_undo() -> None:
    world = World()
    with anyio.fail_after(BOUND):
        async with Runner([writer(world, world.undo)], journal=world) as runner:
            batch = runner.start_batch([ToolCall("write")])
            await anyio.wait_all_tasks_blocked()
        [result] = await batch.results()
    check_truth(world, result)
    assert (result.effects.state, result.stop and result.stop.source) == (EffectState.REVERTED, "shutdown")


async def test_a_close_with_a_limit_publishes_an_undo_under_way_as_what_it_is() -> None:
    world, gate = World(), Gate()

    async def undo(effect: Undoing) -> None:
        await gate.wait()
        world.unmake(effect.target)

    with anyio.fail_after(BOUND):
        async with Runner([writer(world, undo)], journal=world) as runner:
            batch = runner.start_batch([ToolCall("write")])
            await anyio.wait_all_tasks_blocked()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: runner.aclose(limit=0.02))
                [result] = await batch.results()
                assert [one.what for one in result.still_running or ()] == ["undo of b"]
                assert result.effects.state is EffectState.UNKNOWN
                gate.open()
    assert world.undone == ["b"]  # the result has told that a stands


async def test_an_undo_that_cannot_be_recorded_does_not_happen() -> None:
    world = World()

    class Failing(World):
        def append(self, *records: Any) -> None:
            if any(record.type == "effect/unknown" for record in records):
                self.error = "disk full"
            super().append(*records)

    world = Failing()
    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner([writer(world, world.undo)], journal=world) as runner:
            batch = runner.start_batch([ToolCall("write")], signal=stop.signal)
            await anyio.wait_all_tasks_blocked()
            stop.abort()
            [result] = await batch.results()
    check_truth(world, result)
    assert (world.undone, result.effects.state) == ([], EffectState.PARTIAL)
    assert errors(result) == ["not undone: it could not be recorded: disk full"] * 2
    assert [note.kind for note in result.notes] == ["journal_error"]


async def test_an_undo_runs_inside_its_runner_and_may_not_close_it() -> None:
    world, refused = World(), list[str]()

    async def undo(effect: Undoing) -> None:
        for attempt in (runner.aclose, lambda: runner.run("write")):
            try:
                await attempt()
            except Exception as error:
                refused.append(type(error).__name__)
        world.unmake(effect.target)

    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner([writer(world, undo, "a")], journal=world) as runner:
            batch = runner.start_batch([ToolCall("write")], signal=stop.signal)
            await anyio.wait_all_tasks_blocked()
            stop.abort()
            [result] = await batch.results()
    assert (refused, result.effects.state) == (["NestedClose", "NestedRun"], EffectState.REVERTED)


async def test_an_interrupt_out_of_an_undo_reaches_the_host_and_its_result_is_kept() -> None:
    world = World()

    async def undo(effect: Undoing) -> None:
        raise KeyboardInterrupt

    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner([writer(world, undo, "a")], journal=world) as runner:
            batch = runner.start_batch([ToolCall("write")], signal=stop.signal)
            await anyio.wait_all_tasks_blocked()
            stop.abort()
            with pytest.raises(KeyboardInterrupt):
                await batch.results()
    [result] = [record.result for record in world.records if record.type == "call/settled"]
    assert result.effects.state is EffectState.UNKNOWN
