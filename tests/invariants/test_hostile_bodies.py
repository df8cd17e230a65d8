"""Bodies that do what no body should, aborted before each step. The truth is still told, and the runner is still usable."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from invariants.checking import the_next_call, violations, what_stays_behind
from invariants.world import BOUND, World, calls

from toolrunner import AbortController, AbortError, AbortSignal, Runner, ToolContext, ToolResult, tool
from toolrunner.facts import StopPhase
from toolrunner.loops import current_native_task
from toolrunner.results import Code, Ended, Outcome
from toolrunner.testing import abort_sweep

pytestmark = pytest.mark.anyio

Body = Callable[[ToolContext[None]], Awaitable[Any]]


async def swallows_and_works_on(ctx: ToolContext[None]) -> str:
    try:
        await checkpoint()
        await checkpoint()
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            for _ in range(5):
                await checkpoint()
    return "worked on"


async def turns_its_cancel_into_an_error(ctx: ToolContext[None]) -> str:
    try:
        await checkpoint()
        await checkpoint()
    except BaseException as error:
        raise OSError("made of a cancel") from error
    return "done"


async def groups_a_cancel_with_an_error(ctx: ToolContext[None]) -> str:
    async def fail() -> None:
        try:
            await checkpoint()
            await checkpoint()
        finally:
            raise OSError("in the clean-up")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fail)
        tasks.start_soon(checkpoint)
    return "done"


async def has_children_of_its_own(ctx: ToolContext[None]) -> str:
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(checkpoint)
    with anyio.move_on_after(0):
        await anyio.sleep(10)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await checkpoint()
    return "done"


async def cancels_itself(ctx: ToolContext[None]) -> str:
    task = current_native_task()
    if hasattr(task, "cancel"):
        task.cancel()
        try:
            await checkpoint()
        finally:
            task.uncancel()
    return "done"


async def makes_a_cancelled_error_up(ctx: ToolContext[None]) -> str:
    await checkpoint()
    raise asyncio.CancelledError("made up")


async def raises_an_abort_nobody_asked_for(ctx: ToolContext[None]) -> str:
    await checkpoint()
    raise AbortError(None)


async def throws_the_reason(ctx: ToolContext[None]) -> str:
    await checkpoint()
    await checkpoint()
    ctx.signal.raise_if_aborted()
    return "done"


async def uses_the_librarys_timeout(ctx: ToolContext[None]) -> str:
    try:
        with anyio.fail_after(0):
            await anyio.sleep(10)
    except TimeoutError:
        await checkpoint()
    return "done"


async def waits_for_its_abort(ctx: ToolContext[None]) -> str:
    with anyio.move_on_after(0.001):
        await ctx.signal.wait()
    return "waited"


async def returns_what_is_no_json(ctx: ToolContext[None]) -> Any:
    await checkpoint()
    return object()


async def leaves_an_effect_open_across_its_cancel(ctx: ToolContext[None]) -> str:
    async with ctx.effect("test", "outer"), ctx.effect("test", "inner", shield=True):
        await checkpoint()
        await checkpoint()
    return "done"


async def runs_a_child_and_goes_away(ctx: ToolContext[None]) -> str:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ctx.run, "probe")
        await checkpoint()
        tasks.cancel_scope.cancel()
    return "left"


BODIES: dict[str, Body] = {fn.__name__: fn for fn in (
    swallows_and_works_on, turns_its_cancel_into_an_error, groups_a_cancel_with_an_error, has_children_of_its_own,
    cancels_itself, makes_a_cancelled_error_up, raises_an_abort_nobody_asked_for, throws_the_reason, uses_the_librarys_timeout,
    waits_for_its_abort, returns_what_is_no_json, leaves_an_effect_open_across_its_cancel, runs_a_child_and_goes_away,
)}  # fmt: skip


def lies(result: ToolResult, running: int, left_by: str) -> list[str]:
    found = []
    if running:
        found.append("published while its body ran")
    if result.started and result.code is Code.ABORTED_BEFORE_DISPATCH:
        found.append("started and not started")
    if not result.started and left_by:
        found.append("entered, and said not to be started")
    if result.started and {"value": Ended.RETURNED}.get(left_by, result.ended) is not result.ended:
        found.append(f"it returned, and ended={result.ended}")
    if left_by == "error" and result.ended is Ended.RETURNED:
        found.append("it raised, and is said to have returned")
    if result.outcome is Outcome.SUCCEEDED and (left_by != "value" or result.stop is not None):
        found.append("it succeeded without having returned, or although it was stopped")
    if result.stop is not None and (result.stop.phase is StopPhase.BEFORE_DISPATCH) is result.started:
        found.append(f"stopped {result.stop.phase} and started={result.started}")
    return found


@pytest.mark.parametrize("name", BODIES)
async def test_a_hostile_body_aborted_anywhere(name: str) -> None:
    running, left_by = 0, ""

    async def body(ctx: ToolContext[None]) -> Any:
        nonlocal running, left_by
        running, left_by = running + 1, "entered"
        try:
            value = await BODIES[name](ctx)
        except BaseException:
            left_by = "error"
            raise
        else:
            left_by = "value"
            return value
        finally:
            running -= 1

    async with World([]) as world:
        world.runner.register(tool(body, name="hostile", description="A tool."))

        async def scenario(signal: AbortSignal) -> ToolResult:
            nonlocal left_by
            left_by = ""
            result = await world.runner.run("hostile", signal=signal)
            assert lies(result, running, left_by) == [], result.summary()
            return result

        with anyio.fail_after(BOUND):
            async for one in abort_sweep(scenario):
                left = [*what_stays_behind(world), *await the_next_call(world)]
                assert left == [], f"aborted before step {one.step}: {one.value.summary()}"
                if name == "runs_a_child_and_goes_away":  # the only one that a scripted tool tells the truth about
                    assert list(violations(world, None)) == []
                world.forget()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
async def test_an_interrupt_out_of_a_body_is_recorded_and_raised_wherever_the_abort_comes(error: type[BaseException]) -> None:
    @tool
    async def interrupted() -> None:
        """Be interrupted."""
        await checkpoint()
        raise error

    @tool(read_only=True)
    async def reads() -> str:
        """Read."""
        await checkpoint()
        return "read"

    async with Runner([interrupted, reads]) as runner:

        async def scenario(signal: AbortSignal) -> Any:
            batch = runner.start_batch(calls("interrupted", "reads"), signal=signal)
            try:
                results = await batch
            except error:
                results = [runner.result(run_id) for run_id in batch.run_ids]  # type: ignore[assignment]
                assert results[0].started
            else:
                assert not results[0].started or results[0].ended is Ended.STOPPED, results[0].summary()
            return results

        async for one in abort_sweep(scenario):
            assert len(one.value) == 2
            assert runner._services is not None
            assert runner._services.leases.held == 0


async def test_fifty_threads_that_abort_at_once_find_one_first_cause() -> None:
    caller = AbortController()

    @tool
    async def waits() -> None:
        """Wait for the abort."""

        def abort(number: int) -> None:
            if caller.abort(f"{number}"):
                first.append(number)

        threads = [threading.Thread(target=abort, args=(number,)) for number in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        await anyio.sleep(10)

    first: list[int] = []
    async with Runner([waits]) as runner:
        result = await runner.run("waits", signal=caller.signal)
    assert len(first) == 1
    assert result.stop is not None
    assert result.stop.reason == str(first[0])
    assert result.ended is Ended.STOPPED
