"""What a reading of the core against its contract found: each of these was wrong once."""

import asyncio
import contextlib
import contextvars
import subprocess
import sys
import textwrap
import threading
from collections.abc import Awaitable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from batches.stage import BOUND, Refusing, Stage, alone, assert_never_entered, opened, step, stubborn, until
from stillness import all_blocked, quiet

from toolrunner import (
    AbortController,
    AbortSignal,
    BatchResult,
    Decision,
    Policy,
    Runner,
    ToolCall,
    ToolContext,
    ToolResult,
    shell,
    tool,
)
from toolrunner.errors import CallOver, NotSettled
from toolrunner.loops import current_native_task, spawn_detached
from toolrunner.pipeline.leases import LeaseDesk, Needs, Place
from toolrunner.policy import ApprovalRequest
from toolrunner.records import Record
from toolrunner.tasks import TaskRoot
from toolrunner.testing import FakeCommand, FakeSupervisor
from toolrunner.tools import RetryPolicy

TORN_DOWN_AT_ANY_STEP = textwrap.dedent("""
    import asyncio, itertools, anyio
    from toolrunner import MemoryJournal, Runner, ToolCall, tool

    @tool(parallel_safe=True)
    async def wait(name: str) -> str:
        await anyio.sleep_forever()
        return name

    @tool(parallel_safe=True)
    def in_thread(name: str) -> str:
        return name

    async def look(call, signal):
        await asyncio.sleep(0)

    async def around(call, next_):
        return await next_(call)

    async def main(journal, name, in_batch, hooks, steps):
        runner = await Runner([wait, in_thread], journal=journal).__aenter__()
        if hooks:
            runner.pre_execute(look)
            runner.use(around)
        calls = [ToolCall(name, {"name": letter}) for letter in "ab"]
        waiting = runner.start_batch(calls) if in_batch else [asyncio.ensure_future(runner.run(call)) for call in calls]
        for _ in range(steps):
            await asyncio.sleep(0)

    for name, in_batch, hooks, steps in itertools.product(("wait", "in_thread"), (True, False), (True, False), range(14)):
        journal = MemoryJournal()
        asyncio.run(main(journal, name, in_batch, hooks, steps))
        accepted = [record.run_id for record in journal if record.type == "call/recorded"]
        settled = [record.run_id for record in journal if record.type == "call/settled"]
        assert sorted(accepted) == sorted(settled), (name, in_batch, hooks, steps)
        entered = {record.run_id for record in journal if record.type == "call/dispatched"}
        started = {record.run_id for record in journal if record.type == "call/settled" and record.result.started}
        assert started <= entered
    print("done")
""")


@pytest.mark.case("E26")
def test_a_loop_torn_down_before_any_step_of_a_call_leaves_a_result_for_every_call() -> None:
    """A task that is cancelled before its first step never takes it; whoever waited for it waited for ever."""
    argv = [sys.executable, "-W", "error", "-c", TORN_DOWN_AT_ANY_STEP]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


# One call's life.


@pytest.mark.anyio
@pytest.mark.virtual_time
async def test_a_body_left_running_by_a_settle_time_out_is_told_by_its_own_time_limit_and_gives_everything_back() -> None:
    """It was published as aborted, and since it might have been tried again nobody gave its lock and place back."""
    gate = anyio.Event()

    @tool(idempotent=True, retry=RetryPolicy(3, wait_initial=0, wait_max=0), timeout=0.02, resources=lambda _: ["the file"])
    async def hang() -> str:
        with anyio.CancelScope(shield=True):
            while not gate.is_set():
                with contextlib.suppress(anyio.get_cancelled_exc_class()):
                    await gate.wait()
        await anyio.lowlevel.checkpoint()
        return "late"

    async with opened(hang, settle_timeout=0.02) as runner:
        result = await runner.run("hang")
        assert (result.outcome, result.code, result.ended) == ("timed_out", "TIMED_OUT", None)
        assert result.still_running
        assert runner._services is not None
        assert runner._services.leases.held == 1
        gate.set()
        await quiet()
        assert runner._services.leases.held == 0


@pytest.mark.anyio
async def test_a_close_with_a_limit_does_not_list_a_body_that_never_started() -> None:
    @tool
    async def work() -> str:
        return "done"

    for steps in range(12):
        async with opened(work) as runner:
            batch = runner.start_batch([ToolCall("work")])
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            await runner.aclose(limit=0)
            (result,) = await batch
        if not result.started:
            assert result.still_running == ()


@pytest.mark.anyio
async def test_an_abort_after_a_call_was_lost_does_not_become_its_cause() -> None:
    fake = FakeSupervisor(FakeCommand(exit_code=None))
    stop = AbortController()

    async def late(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
        stop.abort("late")

    async with opened(shell, supervisor=fake.made) as runner:
        runner.post_execute(late)
        batch = runner.start_batch([ToolCall("shell", {"command": "x"})], signal=stop.signal)
        process = await fake.prepared()
        await quiet()
        process.lose_keeper()
        (result,) = await batch
    assert (result.outcome, result.code, result.ended) == ("failed", "KEEPER_LOST", "lost")
    assert result.stop is not None
    assert result.stop.phase == "finishing"


@pytest.mark.anyio
async def test_a_thread_that_cannot_be_started_is_a_refusal_and_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    @tool
    def work() -> str:
        return "done"

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with opened(work) as runner:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            first, second = await runner.run_batch([ToolCall("work"), ToolCall("work")])
        for result in (first, second):
            assert (result.outcome, result.code, result.started) == ("rejected", "SPAWN_REFUSED", False)
            assert result.error is not None
            assert "can't start new thread" in result.error.message
        assert (await runner.run("work")).value == "done"


@pytest.mark.anyio
async def test_a_second_question_about_an_expired_grant_holds_no_place_of_the_batch() -> None:
    stage, question = Stage(), anyio.Event()
    asked: list[str] = []

    class Slow:
        async def decide(self, request: ApprovalRequest, signal: AbortSignal) -> Decision:
            asked.append(request.tool)
            if len(asked) > 1:
                await question.wait()
            return Decision.allow()

    async def second(call: ToolCall, signal: AbortSignal) -> None:
        if call.name == "step":
            await until(lambda: len(asked) == 2)

    async with opened(stage.tools, policy=Policy.of(ask=["alone"], default="allow"), approver=Slow()) as runner:
        runner.pre_execute(second)
        assert runner._services is not None
        runner._services.grants._clock = iter([0.0, *[10_000.0] * 1000]).__next__
        batch = runner.start_batch([alone("a"), step("b")])
        await until(lambda: len(asked) == 2)
        await until(lambda: stage.entered == ["b"])  # a question to a person holds nobody up
        stage.let_go()
        await quiet()
        question.set()
        a, b = await batch
    assert (a.value, b.value) == ("a", "b")


# Leases.


@pytest.mark.anyio
async def test_a_lease_granted_in_the_tick_in_which_its_wait_is_cancelled_is_given_back() -> None:
    desk, needs = LeaseDesk(), Needs((), (Place("one", 1),))
    held = await desk.ask(needs, AbortSignal())
    assert held is not None
    box: list[Any] = []

    async def wait() -> None:
        box.append(await desk.ask(needs, AbortSignal()))

    root = TaskRoot()
    task = root.spawn(wait, "waits")
    await all_blocked()
    held.release()
    task.cancel()
    with anyio.fail_after(60):
        await root.wait_empty()
    for lease in box:  # trio may let it through: then it is its owner's
        lease.release()
    assert desk.held == 0


# Child calls.


@pytest.mark.anyio
async def test_what_a_child_cannot_prove_its_parent_does_not_claim() -> None:
    fake = FakeSupervisor(FakeCommand(exit_code=None))

    @tool
    async def parent(ctx: ToolContext[Any]) -> str:
        return (await ctx.run("shell", {"command": "x"})).outcome

    async with opened(parent, shell, supervisor=fake.made) as runner:
        batch = runner.start_batch([ToolCall("parent")])
        process = await fake.prepared()
        await quiet()
        process.lose_keeper()
        (result,) = await batch
    assert result.value == "failed"
    assert result.still_running is None
    assert batch_proof(result) is None


def batch_proof(result: ToolResult) -> object:
    return BatchResult((result,)).still_running


@pytest.mark.anyio
async def test_a_child_call_made_after_its_parents_body_is_over_is_refused() -> None:
    """A task that the body left behind makes it: the parent's result was told, and its locks are given back."""
    stage, kept = Stage(), list[ToolContext[Any]]()

    @tool
    async def parent(ctx: ToolContext[Any]) -> None:
        kept.append(ctx)

    async with opened(parent, stage.tools) as runner:
        await runner.run("parent")
        with pytest.raises(CallOver, match="is over"):
            await kept[0].run("step", {"name": "late"})
    assert stage.entered == []


@pytest.mark.anyio
async def test_a_child_call_begun_while_its_parent_waits_for_another_is_waited_for_too() -> None:
    stage = Stage()

    @tool
    async def parent(ctx: ToolContext[Any]) -> None:
        async def later(name: str, after: str) -> None:
            await stage[after].started.wait()
            await ctx.run("step", {"name": name})

        native = contextvars.copy_context()
        spawn_detached(lambda: quietly(ctx.run("step", {"name": "a"})), "a", native)
        spawn_detached(lambda: quietly(later("b", "wake")), "b", native)
        await stage["a"].started.wait()

    async def quietly(work: Any) -> None:
        await work

    async with opened(parent, stage.tools) as runner:
        batch = runner.start_batch([ToolCall("parent")])
        await stage.started("a")
        await quiet()
        stage["wake"].started.set()
        await stage.started("b")
        stage.end("a")
        await quiet()
        with pytest.raises(NotSettled):
            runner.result(batch.run_ids[0])
        stage.end("b")
        await batch


# Keys.


@pytest.mark.anyio
async def test_calls_whose_children_wait_for_each_others_keys_do_not_hang() -> None:
    both = {1: anyio.Event(), 2: anyio.Event()}

    @tool(dedupe_by_arguments=True, parallel_safe=True)
    async def parent(number: int, ctx: ToolContext[Any]) -> str:
        both[number].set()
        await both[3 - number].wait()
        child = await ctx.run("parent", {"number": 3 - number})
        return f"{child.outcome} {child.code}"

    async with opened(parent) as runner:
        results = await runner.run_batch([ToolCall("parent", {"number": 1}), ToolCall("parent", {"number": 2})])
    assert [result.outcome for result in results] == ["succeeded", "succeeded"]
    assert "rejected SPAWN_REFUSED" in [result.value for result in results]


@pytest.mark.anyio
async def test_a_call_that_makes_itself_again_under_its_own_key_does_not_wait_for_itself() -> None:
    @tool(dedupe_by_arguments=True)
    async def again(ctx: ToolContext[Any]) -> str:
        child = await ctx.run("again")
        return f"{child.outcome} {child.code}"

    async with opened(again) as runner:
        assert (await runner.run("again")).value == "rejected SPAWN_REFUSED"


@pytest.mark.anyio
async def test_a_replayed_result_names_the_parent_of_the_call_that_asked() -> None:
    @tool(dedupe_by_arguments=True)
    async def leaf() -> str:
        return "leaf"

    seen: list[ToolResult] = []

    @tool
    async def parent(ctx: ToolContext[Any]) -> None:
        seen.append(await ctx.run("leaf"))

    async with opened(leaf, parent) as runner:
        first = await runner.run("leaf")
        outer = await runner.run("parent")
    assert (seen[0].replayed, seen[0].about_run_id) == (True, first.run_id)
    assert seen[0].parent_run_id == outer.run_id


# Closing.


@pytest.mark.anyio
async def test_a_body_that_closes_its_own_runner_is_refused() -> None:
    box: list[Runner] = []

    @tool
    async def close() -> str:
        await box[0].aclose()
        return "closed"

    async with opened(close) as runner:
        box.append(runner)
        result = await runner.run("close")
        assert result.error is not None
        assert "NestedClose" in result.error.message
        assert (await runner.run("close")).outcome == "failed"


@pytest.mark.anyio
async def test_a_natively_cancelled_close_goes_on_to_its_end() -> None:
    if not hasattr(current_native_task(), "cancelling"):
        pytest.skip("native cancels are asyncio's")
    fake, stage = FakeSupervisor(), Stage()
    with anyio.fail_after(BOUND):
        runner = await Runner([stage.tools], supervisor=fake.made).__aenter__()
        batch = runner.start_batch([stubborn("a")])
        await stage.started("a")
        closing = asyncio.ensure_future(runner.aclose())
        await quiet()
        closing.cancel()
        await quiet()
        stage.end("a")
        with pytest.raises(asyncio.CancelledError):
            await closing
        await batch
        assert fake.closed


@pytest.mark.anyio
@pytest.mark.virtual_time
async def test_a_batch_that_the_journal_refuses_half_way_leaves_nothing_to_wait_for() -> None:
    stage = Stage()
    recorded: list[str] = []

    def second(record: Record) -> bool:
        if record.type == "call/recorded":
            recorded.append(record.run_id)
        return len(recorded) == 2 and record.type == "call/recorded"

    journal = Refusing(second)
    with anyio.fail_after(BOUND):
        runner = await Runner([stage.tools], journal=journal).__aenter__()
        with pytest.raises(RuntimeError, match="bug at call/recorded"):
            runner.start_batch([step("a"), step("b")], deadline=60)
        await runner.aclose(limit=0.1)
    settled = [record.result for record in journal.inner if record.type == "call/settled"]
    assert [(result.run_id, result.code) for result in settled] == [(recorded[0], "ABORTED_BEFORE_DISPATCH")]


# Waits for the journal.


class Stuck:
    """A journal whose records of one type never become durable."""

    def __init__(self, *types: str) -> None:
        self.types = types

    def append(self, *records: Record) -> Awaitable[None] | None:
        return anyio.sleep_forever() if any(record.type in self.types for record in records) else None

    @property
    def error(self) -> str | None:
        return None

    async def aclose(self) -> None:
        pass


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["call/dispatched", "call/ended"])
async def test_a_journal_that_never_answers_holds_a_call_for_its_bound(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolrunner.pipeline.durable.DURABLE_WAIT", 0.05)
    stage = Stage()
    stage.let_go()
    async with opened(stage.tools, journal=Stuck(kind)) as runner:
        result = await runner.run(step("a"))
    assert [note.kind for note in result.notes] == ["journal_error"]
    if kind == "call/dispatched":
        assert (result.outcome, result.code, result.started) == ("rejected", "ENVIRONMENT_GONE", False)
    else:
        assert (result.outcome, result.value) == ("succeeded", "a")


# Foreign code that leaves by an interrupt.


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["pre_execute", "use", "post_execute"])
async def test_an_interrupt_out_of_a_hook_reaches_the_host(kind: str) -> None:
    stage = Stage()
    stage.let_go()

    async def leave(*_: object) -> None:
        raise KeyboardInterrupt

    async with opened(stage.tools) as runner:
        getattr(runner, kind)(leave)
        batch = runner.start_batch([alone("a"), alone("b")])
        with pytest.raises(KeyboardInterrupt):
            await batch
        a, b = (runner.result(run_id) for run_id in batch.run_ids)
    assert a.started == (kind == "post_execute")
    if not a.started:  # else the next one may have started when the first one's body was over
        assert_never_entered(b)
