"""Gates hold bodies and threads; steps of every task are counted, on each loop, the same each time."""

import contextlib
import threading

import anyio
import pytest
from anyio.lowlevel import checkpoint

from toolrunner import AbortSignal, Runner, ToolResult, tool
from toolrunner.results import Outcome
from toolrunner.testing import Gate, Script, ScriptedTool, abort_sweep, before_step, cancel_sweep

pytestmark = [pytest.mark.anyio, pytest.mark.uvloop]


async def test_a_gate_holds_whoever_arrives_until_it_is_opened() -> None:
    gate = Gate()
    through: list[str] = []

    async def pass_it() -> None:
        await gate.wait()
        through.append("task")

    def pass_in_thread() -> None:
        gate.wait_blocking()
        through.append("thread")

    thread = threading.Thread(target=pass_in_thread)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pass_it)
            thread.start()
            await gate.reached(2)
            assert through == []
            assert gate.waiting == 2
            assert not gate.is_open
            gate.open()
    thread.join(60)
    assert sorted(through) == ["task", "thread"]
    await gate.wait()
    assert gate.arrivals == 3


async def test_a_thread_does_not_wait_for_ever_at_a_gate_that_nobody_opens() -> None:
    with pytest.raises(TimeoutError, match="nobody opened the gate"):
        Gate().wait_blocking(0.01)


async def test_a_cancelled_wait_at_a_gate_is_no_longer_counted_as_waiting() -> None:
    gate = Gate()
    with anyio.move_on_after(0):
        await gate.wait()
    assert (gate.arrivals, gate.waiting) == (1, 0)


async def test_something_happens_before_exactly_the_nth_step() -> None:
    async def count_to_five() -> int:
        for number in range(5):
            if fired:
                return number
            await checkpoint()
        return 5

    fired: list[int] = []
    reached = []
    for at in range(1, 12):
        fired.clear()
        with before_step(at, lambda at=at: fired.append(at)) as steps:  # type: ignore[misc]
            reached.append(await count_to_five())
        assert fired == ([at] if steps.fired else [])
    assert reached == sorted(reached)
    assert reached[-1] == 5
    assert set(range(1, 6)) <= set(reached)


async def test_steps_of_other_tasks_count_too_and_none_after_the_block() -> None:
    async def three() -> None:
        for _ in range(3):
            await checkpoint()

    with before_step(None, lambda: None) as alone:
        await three()
    with before_step(None, lambda: None) as together:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(three)
            tasks.start_soon(three)
    assert together.count > alone.count
    counted = together.count
    await three()
    assert together.count == counted


async def test_what_goes_wrong_at_a_step_is_raised_when_the_block_is_left() -> None:
    def fail() -> None:
        raise OSError("at the step")

    with pytest.raises(OSError, match="at the step"), before_step(1, fail):
        await anyio.sleep(0.001)


async def test_blocks_may_be_nested() -> None:
    with before_step(None, lambda: None) as outer:
        with before_step(None, lambda: None) as inner:
            await checkpoint()
        await checkpoint()
    assert 0 < inner.count < outer.count


async def test_a_sweep_meets_every_state_of_a_call_and_ends_when_the_call_ends_first() -> None:
    write = ScriptedTool("write", Script(changes=["a"]))
    async with Runner([write.tool]) as runner:

        async def scenario(signal: AbortSignal) -> ToolResult:
            return await runner.run("write", signal=signal)

        rounds = [one async for one in abort_sweep(scenario)]
        again = [one async for one in abort_sweep(scenario)]
    assert [one.step for one in rounds] == list(range(1, len(rounds) + 1))
    assert [one.fired for one in rounds] == [True] * (len(rounds) - 1) + [False]
    assert {one.value.started for one in rounds} == {True, False}
    assert rounds[-1].value.outcome is Outcome.SUCCEEDED
    assert [one.value.summary() for one in rounds] == [one.value.summary() for one in again]


async def test_a_stride_leaves_steps_out() -> None:
    async def scenario(signal: AbortSignal) -> None:
        for _ in range(10):
            await checkpoint()

    assert [one.step async for one in abort_sweep(scenario, stride=4)][:3] == [1, 5, 9]


async def test_a_sweep_finds_the_one_window_of_a_broken_tool() -> None:
    made: list[str] = []

    @tool
    async def leaves_a_half() -> None:
        """Make two changes that belong together, and undo the first only where it expects a stop."""
        made.clear()
        made.append("first")
        for _ in range(3):
            await checkpoint()
        try:
            await checkpoint()
        except BaseException:
            made.clear()
            raise
        made.append("second")

    async with Runner([leaves_a_half]) as runner:
        halves = []
        async for one in abort_sweep(lambda signal: runner.run("leaves_a_half", signal=signal)):
            if made == ["first"]:
                halves.append(one.step)
            made.clear()
    assert halves


@pytest.mark.parametrize("native", [False, True])
async def test_a_host_is_cancelled_at_each_step_and_nobody_else_is(native: bool) -> None:
    seen: list[str] = []

    async def scenario() -> str:
        seen.clear()
        with contextlib.suppress(ZeroDivisionError):
            for number in range(3):
                await checkpoint()
                seen.append(str(number))
        return "through"

    rounds = [one async for one in cancel_sweep(scenario, native=native)]
    assert rounds[-1].value == "through"
    assert not rounds[-1].fired
    assert {one.value for one in rounds if one.cancelled} == {None}
    assert sum(one.cancelled for one in rounds) >= 3
    await checkpoint()  # the test's own task was not cancelled


async def test_an_error_of_the_scenario_is_the_sweeps() -> None:
    async def scenario(signal: AbortSignal) -> None:
        await checkpoint()
        raise OSError("of the scenario")

    with pytest.raises(OSError, match="of the scenario"):
        async for _ in abort_sweep(scenario):
            pass
