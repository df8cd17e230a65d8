"""Calls in doubt: who is held back for one, until when, and whose doubt it is."""

from typing import Any

import anyio
import pytest
from undo.doubtful import BOUND, check_in_doubt, doubtful, read, reconciled, says, services, write, write_other, wrote

from toolrunner import AbortController, MemoryJournal, Runner, ToolCall, ToolContext, tool
from toolrunner.facts import Effects, EffectState
from toolrunner.pipeline import reconcile
from toolrunner.results import Code, Outcome
from toolrunner.tools import Reconciled

pytestmark = pytest.mark.anyio


@pytest.mark.case("E17")
async def test_later_writers_are_refused_naming_the_call_and_its_tool_is_asked_once_while_others_pass() -> None:
    asked: list[str] = []
    journal = MemoryJournal()
    tools = [doubtful(says("unknown", asked)), write, read, write_other]
    with anyio.fail_after(BOUND):
        async with Runner(tools, deps="deps", journal=journal) as runner:
            first = await runner.run("charge")
            assert first.effects.state is EffectState.UNKNOWN
            assert asked == []
            assert (await runner.run("read")).outcome is Outcome.SUCCEEDED
            assert (await runner.run("write_other")).outcome is Outcome.SUCCEEDED
            assert asked == []
            check_in_doubt(await runner.run("write"), first)
            check_in_doubt(await runner.run("charge"), first)
            check_in_doubt(await runner.run("write"), first)
            assert (await runner.run("read")).outcome is Outcome.SUCCEEDED
    assert asked == ["charge"]
    assert reconciled(journal) == [("unknown", "tool", "")]


@pytest.mark.case("E17")
async def test_a_tool_that_cannot_find_out_holds_nobody_back() -> None:
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(None), write]) as runner:
            assert (await runner.run("charge")).effects.state is EffectState.UNKNOWN
            assert (await runner.run("write")).outcome is Outcome.SUCCEEDED


@pytest.mark.case("E17")
@pytest.mark.parametrize("answer", ["completed", "none"])
async def test_a_call_that_is_cleared_up_holds_nobody_back(answer: str) -> None:
    asked: list[str] = []
    journal = MemoryJournal()
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(says(answer, asked)), write], deps="deps", journal=journal) as runner:
            first = await runner.run("charge")
            assert (await runner.run("write")).outcome is Outcome.SUCCEEDED
            assert (await runner.run("write")).outcome is Outcome.SUCCEEDED
            assert await reconcile.settle(services(runner), first.run_id) is Reconciled(answer)
            assert len(services(runner).doubts) == 0
    assert asked == ["charge"]
    assert reconciled(journal) == [(answer, "tool", "")]


async def test_a_writer_that_is_aborted_while_its_doubt_is_looked_into_does_not_wait_for_it() -> None:
    reached, go_on = anyio.Event(), anyio.Event()

    async def found(ctx: object, call: object, effects: object) -> str:
        reached.set()
        await go_on.wait()
        return "none"

    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(found), write]) as runner:
            first = await runner.run("charge")
            batch = runner.start_batch([ToolCall("write")], signal=stop.signal)
            await reached.wait()
            stop.abort("enough")
            [aborted] = await batch.results()
            assert (aborted.code, aborted.started) == (Code.ABORTED_BEFORE_DISPATCH, False)
            go_on.set()
            assert await reconcile.settle(services(runner), first.run_id) is Reconciled.NONE
            assert (await runner.run("write")).outcome is Outcome.SUCCEEDED


async def test_a_doubt_of_an_earlier_runner_is_looked_into_by_the_next_one() -> None:
    async with Runner([doubtful(says("unknown"))], deps="deps") as runner:
        earlier = await runner.run("charge", {"amount": 5})
    seen: list[ToolCall] = []

    async def found(ctx: ToolContext[Any], call: ToolCall, effects: Effects) -> str:
        seen.append(call)
        return "unknown"

    charge = doubtful(found)
    with anyio.fail_after(BOUND):
        async with Runner([charge, write]) as runner:
            doubts = services(runner).doubts
            assert doubts.load(earlier, charge)
            check_in_doubt(await runner.run("write"), earlier)
            assert await reconcile.settle(services(runner), earlier.run_id) is Reconciled.UNKNOWN
            written = await runner.run("read")
            assert not doubts.load(written, charge)
            assert not doubts.load(earlier, doubtful(None))
    assert [call.arguments for call in seen] == [{"amount": 5}]


async def test_nobody_is_asked_about_a_call_of_which_something_still_runs() -> None:
    asked: list[str] = []
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(says("none", asked)), write], deps="deps") as runner:
            first = await runner.run("charge")
            services(runner).doubts.of(first.run_id).still_runs = True
            check_in_doubt(await runner.run("write"), first)
    assert asked == []


async def test_without_resources_only_a_key_asks() -> None:
    asked: list[str] = []
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(says("none", asked), resources=None), write], deps="deps") as runner:
            first = await runner.run("charge")
            assert (await runner.run("write")).outcome is Outcome.SUCCEEDED
            assert asked == []
            assert await reconcile.settle(services(runner), first.run_id) is Reconciled.NONE
    assert asked == ["charge"]


async def test_a_writer_that_gets_the_lock_before_the_call_in_doubt_has_settled_finds_the_doubt() -> None:
    begun, go_on, hooked = anyio.Event(), anyio.Event(), anyio.Event()

    @tool(resources=wrote)
    async def charge(ctx: ToolContext[Any]) -> None:
        begun.set()
        await go_on.wait()
        async with ctx.effect("http", "account"):
            raise OSError("connection reset")

    charge.reconcile(says("unknown"))

    async def hook(call: ToolCall, result: object, signal: object) -> None:
        if call.name == "charge":
            await hooked.wait()

    with anyio.fail_after(BOUND):
        async with Runner([charge, write], deps=None) as runner:
            runner.post_execute(hook)
            first = runner.start_batch([ToolCall("charge")])
            await begun.wait()
            second = runner.start_batch([ToolCall("write")])
            await anyio.wait_all_tasks_blocked()
            go_on.set()
            [refused] = await second.results()
            hooked.set()
            [doubted] = await first.results()
    check_in_doubt(refused, doubted)
