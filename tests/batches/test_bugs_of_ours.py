"""An internal error in the middle of a batch: nothing more starts, what runs is waited for, every call has its result."""

from typing import Any

import anyio
import pytest
from batches.stage import Refusing, Stage, alone, assert_never_entered, leases, opened, step
from stillness import quiet

from toolrunner import ToolCall, tool
from toolrunner.abort import AbortSignal

pytestmark = pytest.mark.anyio


@pytest.mark.case("S19")
async def test_an_internal_error_while_another_call_is_prepared_starts_nothing_and_waits_for_what_runs() -> None:
    stage, gate, hooked = Stage(), anyio.Event(), anyio.Event()
    run_ids: list[str] = []
    journal = Refusing(lambda record: record.type == "call/dispatched" and record.run_id == run_ids[1])

    async def before(call: ToolCall, _: AbortSignal) -> None:
        if call.call_id == "c":
            hooked.set()
            await gate.wait()
            raise ValueError("a later error, of a sibling")

    async def wrap(call: ToolCall, next_: Any) -> Any:
        if call.call_id == "b":  # so that b is dispatched while c's hook is being asked
            await hooked.wait()
        return await next_(call)

    done: list[BaseException] = []
    async with opened(stage.tools, journal=journal) as runner:
        runner.pre_execute(before)
        runner.use(wrap)
        batch = runner.start_batch([step(name) for name in "abcd"])
        run_ids.extend(batch.run_ids)

        async def wait() -> None:
            with pytest.raises(RuntimeError) as caught:
                await batch
            done.append(caught.value)

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await stage.started("a")
            await quiet()
            gate.set()
            await quiet()
            assert done == []
            assert stage.log == ["+a"]
            stage.end("a")
        a, b, c, d = [runner.result(run_id) for run_id in batch.run_ids]
        assert leases(runner) == 0
    assert stage.log == ["+a", "-a"]
    assert str(done[0]) == "bug at call/dispatched"
    # A drain: what ran came to its own end and counts.
    assert (a.outcome, a.value, a.ended) == ("succeeded", "a", "returned")
    for result in (b, c, d):
        assert (result.started, result.ended, result.effects.state) == (False, None, "none")
    assert (b.outcome, b.code) == ("aborted", "ABORTED_BEFORE_DISPATCH")
    assert b.error is not None
    assert "bug at call/dispatched" in b.error.message
    assert_never_entered(d)


@pytest.mark.case("E15")
@pytest.mark.parametrize("kind", ["call/dispatched", "call/decided"])
async def test_a_bug_of_ours_in_mid_batch_loses_no_result_and_leaves_the_runner_usable(kind: str) -> None:
    stage, bad = Stage(), list[str]()
    journal = Refusing(lambda record: record.type == kind and record.run_id in bad)
    async with opened(stage.tools, journal=journal) as runner:
        batch = runner.start_batch([step(name) for name in "abc"] + [alone("x")])
        bad.append(batch.run_ids[2])
        await stage.started("a", "b")
        await quiet()
        assert set(stage.entered) == {"a", "b"}
        stage.end("b", "a")
        with pytest.raises(RuntimeError, match=f"bug at {kind}"):
            await batch
        a, b, c, x = [runner.result(run_id) for run_id in batch.run_ids]
        assert leases(runner) == 0
        stage.end("again", "more")
        again = await runner.run_batch([step("again"), alone("more")])
    assert [(result.outcome, result.value) for result in (a, b)] == [("succeeded", "a"), ("succeeded", "b")]
    assert (c.outcome, c.code, c.started, c.effects.state) == ("aborted", "ABORTED_BEFORE_DISPATCH", False, "none")
    assert_never_entered(x)
    assert [result.value for result in again] == ["again", "more"]


@pytest.mark.case("E15")
async def test_a_bug_of_ours_while_an_end_is_recorded_still_gives_back_what_the_call_held() -> None:
    stage, bad = Stage(), list[str]()
    journal = Refusing(lambda record: record.type == "call/ended" and record.run_id in bad)

    @tool(resources=lambda _: ["db"])
    async def write(name: str) -> str:
        return await stage.play(name)

    stage.end("a", "b", "c")
    async with opened(stage.tools, write, journal=journal) as runner:
        batch = runner.start_batch([ToolCall("write", {"name": "a"}), step("b")])
        bad.append(batch.run_ids[0])
        with pytest.raises(RuntimeError, match="bug at call/ended"):
            await batch
        first = runner.result(batch.run_ids[0])
        assert (first.started, first.ended, first.value) == (True, "returned", "a")
        assert leases(runner) == 0
        assert (await runner.run("write", {"name": "c"})).value == "c"


async def test_who_waits_for_a_key_gets_its_answer_although_the_result_could_not_be_recorded() -> None:
    stage, first = Stage(), list[str]()
    journal = Refusing(lambda record: record.type == "call/settled" and record.run_id in first)
    async with opened(stage.tools, journal=journal) as runner:
        batch = runner.start_batch([ToolCall("step", {"name": "a"}, idempotency_key="k")])
        first.extend(batch.run_ids)
        await stage.started("a")
        other = runner.start_batch([ToolCall("step", {"name": "a"}, idempotency_key="k")])
        await quiet()
        stage.end("a")
        with pytest.raises(RuntimeError, match="bug at call/settled"):
            await batch
        with anyio.fail_after(2):
            (again,) = await other
    assert (again.replayed, again.about_run_id, stage.entered) == (True, first[0], ["a"])
