"""The same sweeps with a journal that takes its time, and with one that fails: the windows around each durable record."""

import pytest
from anyio.lowlevel import checkpoint
from invariants.checking import check
from invariants.journals import SlowJournal
from invariants.sweeping import host_sweep, sweep
from invariants.world import KINDS, World, calls

from toolrunner import Runner, ToolContext, tool
from toolrunner.results import Outcome
from toolrunner.testing import Recorder, Script, ScriptedApprover, ScriptedTool

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("mode", ["immediate", "drain"])
async def test_one_call_of_any_kind_aborted_anywhere_with_a_slow_journal(mode: str) -> None:
    for kind in KINDS.values():
        async with World([kind.made("t")], journal=SlowJournal()) as world:
            assert await sweep(world, lambda signal: world.runner.run("t", signal=signal), mode=mode) > 3


async def test_an_asked_batch_aborted_anywhere_with_a_slow_journal() -> None:
    names = ["writes", "reads", "stubborn", "sync"]
    tools = [KINDS[name].made(name) for name in names]
    async with World(tools, journal=SlowJournal(), ask=True, approver=ScriptedApprover(concurrent=True)) as world:
        assert await sweep(world, lambda signal: world.runner.run_batch(calls(*names), signal=signal)) > 3


async def test_a_body_is_entered_only_after_its_dispatch_is_durable_and_acts_only_after_its_plan_is() -> None:
    journal = SlowJournal()
    recorder = Recorder()

    def durable(kind: str, ctx: ToolContext[None]) -> bool:
        return [id(record) in journal.durable for record in recorder.of(kind, run_id=ctx.run_id)] == [True]

    seen: list[bool] = []

    @tool
    async def write(ctx: ToolContext[None]) -> None:
        """Look at the journal."""
        seen.append(durable("call/dispatched", ctx))
        async with ctx.effect("test", "a"):
            seen.append(durable("effect/planned", ctx))

    @tool
    def write_in_a_thread(ctx: ToolContext[None]) -> None:
        """Look at the journal."""
        seen.append(durable("call/dispatched", ctx))
        with ctx.effect("test", "a"):
            seen.append(durable("effect/planned", ctx))

    async with Runner([write, write_in_a_thread], journal=journal) as runner:
        runner.on_record(recorder)
        await runner.run("write")
        await runner.run("write_in_a_thread")
    assert seen == [True, True, True, True]


@pytest.mark.parametrize("native", [False, True])
async def test_a_host_cancelled_anywhere_with_a_slow_journal(native: bool) -> None:
    tools = [KINDS["writes"].made("writes"), ScriptedTool("parent", Script(children=[("writes", {})], changes=["own"]))]
    async with World(tools, journal=SlowJournal()) as world:
        assert await host_sweep(world, lambda: world.runner.run_batch(calls("parent", "writes")), native=native) > 3


@pytest.mark.parametrize("kind", ["writes", "reads", "sync", "is tried again", "shields", "fails after its change"])
async def test_a_journal_that_fails_at_any_record_starts_nothing_more_and_tells_no_lie(kind: str) -> None:
    for at in range(1, 15):
        async with World([KINDS[kind].made("t")], journal=SlowJournal(fails_at=at)) as world:
            world.probe_may_fail = True
            results = await world.runner.run_batch(calls("t", "t"))
            await check(world, results)
            last = await world.runner.run("t")
            if world.runner._journal.error is not None:
                assert not last.started
                assert last.outcome is Outcome.REJECTED
            await checkpoint()
