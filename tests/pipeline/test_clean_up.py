"""Clean-up and shielded effects: a stop, a scope's cancel and a native one all wait until the block is over."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pipeline.bench import FINISHED_FIRST, STOPPED, SUCCEEDED, effects, facts, only, open_runner, stop_of, text
from stillness import all_blocked

from toolrunner import AbortController, Runner, ToolCall, ToolContext, tool
from toolrunner.facts import EffectStage, EffectState, Evidence, StopPhase
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio

gates: list[Gate] = []
done: list[str] = []
ASYNCIO = [pytest.param(("asyncio", {"debug": True}), id="asyncio")]


@pytest.fixture(autouse=True)
def nothing_yet() -> None:
    gates.clear()
    done.clear()


@tool
async def tidy(ctx: ToolContext[Any]) -> str:
    """Work until stopped, then clean up with awaits."""
    try:
        await gates[0].wait()
        done.append("worked")
        return "worked"
    finally:
        with ctx.cleanup():
            await gates[1].wait()
            await anyio.lowlevel.checkpoint()
            done.append("cleaned")


@tool
async def shielded(ctx: ToolContext[Any]) -> str:
    """Write without being cut in half, then give way."""
    async with ctx.effect("file", "whole", shield=True) as effect:
        await gates[0].wait()
        await anyio.lowlevel.checkpoint()
        effect.receipt = "sha 1"
        done.append("written")
    await anyio.sleep_forever()
    return "never"


@tool
async def last(ctx: ToolContext[Any]) -> str:
    """Write without being cut in half, as the last thing it does."""
    async with ctx.effect("file", "whole", shield=True):
        await gates[0].wait()
        done.append("written")
    return "wrote it"


async def abort_it(runner: Runner, call: ToolCall, between: Callable[[], Awaitable[None]]) -> Any:
    stop = AbortController()
    batch = runner.start_batch([call], signal=stop.signal)
    await gates[0].reached()
    stop.abort("enough")
    await between()
    return only(await batch.results())


async def cancel_scope(runner: Runner, call: ToolCall, between: Callable[[], Awaitable[None]]) -> Any:
    batch = runner.start_batch([call])
    async with anyio.create_task_group() as group:

        async def host() -> None:
            with anyio.CancelScope() as scope:
                group.start_soon(cancel, scope)
                await batch.results()

        async def cancel(scope: anyio.CancelScope) -> None:
            await gates[0].reached()
            scope.cancel()
            await between()

        group.start_soon(host)
    return runner.result(batch.run_ids[0])


async def cancel_natively(runner: Runner, call: ToolCall, between: Callable[[], Awaitable[None]]) -> Any:
    batch = runner.start_batch([call])
    host = asyncio.create_task(batch.results())
    await gates[0].reached()
    host.cancel("the host was told to go")
    await between()
    with pytest.raises(asyncio.CancelledError, match="the host was told to go"):
        await host
    return runner.result(batch.run_ids[0])


WAYS = [pytest.param(abort_it, "caller", id="abort"), pytest.param(cancel_scope, "host", id="scope")]


async def check_cleaned(way: Any, source: str) -> None:
    gates[:] = [Gate(), Gate()]

    async def between() -> None:
        await gates[1].reached()
        await all_blocked()
        assert done == []
        gates[1].open()

    async with open_runner([tidy]) as runner:
        result = await way(runner, ToolCall("tidy"), between)
    assert done == ["cleaned"]
    assert facts(result) == STOPPED
    assert (stop_of(result)[0], stop_of(result)[2]) == (source, StopPhase.RUNNING)


async def check_written_whole(way: Any, source: str) -> None:
    gates[:] = [Gate()]

    async def between() -> None:
        await all_blocked()
        assert done == []
        gates[0].open()

    async with open_runner([shielded]) as runner:
        result = await way(runner, ToolCall("shielded"), between)
    assert done == ["written"]
    assert facts(result) == STOPPED
    [record] = result.effects.records
    assert (record.stage, record.receipt) == (EffectStage.APPLIED, "sha 1")
    assert effects(result) == (EffectState.PARTIAL, Evidence.REPORTED)
    assert (stop_of(result)[0], stop_of(result)[2]) == (source, StopPhase.RUNNING)
    assert "whole" in text(result)


@pytest.mark.parametrize("way, source", WAYS)
async def test_clean_up_that_awaits_runs_to_its_end(way: Any, source: str) -> None:
    await check_cleaned(way, source)


@pytest.mark.parametrize("way, source", WAYS)
async def test_a_shielded_effect_is_not_cut_in_half(way: Any, source: str) -> None:
    await check_written_whole(way, source)


@pytest.mark.parametrize("anyio_backend", ASYNCIO)
async def test_clean_up_runs_to_its_end_under_a_native_cancel_of_the_host(anyio_backend: object) -> None:
    await check_cleaned(cancel_natively, "host")


@pytest.mark.parametrize("anyio_backend", ASYNCIO)
async def test_a_shielded_effect_is_not_cut_in_half_by_a_native_cancel_of_the_host(anyio_backend: object) -> None:
    await check_written_whole(cancel_natively, "host")


class SlowJournal:
    """Every record becomes durable a little later; knows which were waited for to the end."""

    error = None

    def __init__(self) -> None:
        self.durable: list[str] = []

    def append(self, *records: Any) -> Any:
        return self._write([record.type for record in records]) if records[0].type in ("call/ended", "call/dispatched") else None

    async def _write(self, types: list[str]) -> None:
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        self.durable.extend(types)

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("name", ["last", "tidy"])
async def test_a_cancel_that_came_too_late_for_the_body_hits_nothing_behind_it(name: str) -> None:
    """The cancel was held back to the body's last line: what is left of it must not end the wait for `call/ended`."""
    gates[:] = [Gate(), Gate()]
    gates[1].open()
    journal = SlowJournal()

    async def between() -> None:
        await all_blocked()
        gates[0].open()

    async with open_runner([last, tidy], journal=journal) as runner:
        result = await abort_it(runner, ToolCall(name), between)
        assert journal.durable == ["call/dispatched", "call/ended"]
        assert runner._services is not None
        assert runner._services.leases.held == 0
    if name == "last":
        assert facts(result) == FINISHED_FIRST
        assert (result.value, done) == ("wrote it", ["written"])
        assert "Its change was made: whole" in text(result) or "changes were made: whole" in text(result)
    else:
        assert facts(result) == STOPPED


async def test_without_a_stop_both_blocks_are_as_if_they_were_not_there() -> None:
    gates[:] = [Gate(), Gate()]
    for gate in gates:
        gate.open()
    async with open_runner([tidy, last]) as runner:
        assert facts(await runner.run("tidy")) == SUCCEEDED
        result = await runner.run("last")
    assert facts(result) == SUCCEEDED
    assert effects(result) == (EffectState.COMPLETED, Evidence.REPORTED)


async def test_a_body_is_cancelled_once_and_its_except_may_await() -> None:
    """One cancel, not one at every await: on asyncio plain clean-up works too (trio needs `ctx.cleanup`)."""
    cancels: list[str] = []

    @tool
    async def plain(ctx: ToolContext[Any]) -> None:
        """Clean up."""
        try:
            await gates[0].wait()
        except anyio.get_cancelled_exc_class():
            cancels.append("once")
            with ctx.cleanup():
                for _ in range(5):
                    await anyio.lowlevel.checkpoint()
            raise

    gates[:] = [Gate()]
    async with open_runner([plain]) as runner:
        result = await abort_it(runner, ToolCall("plain"), all_blocked)
    assert cancels == ["once"]
    assert facts(result) == STOPPED


async def test_a_block_inside_a_block_holds_the_cancel_back_to_the_outer_ones_end() -> None:
    @tool
    async def nested(ctx: ToolContext[Any]) -> None:
        """Nest an effect in clean-up."""
        with ctx.cleanup():
            async with ctx.effect("file", "inner", shield=True):
                await gates[0].wait()
            await anyio.lowlevel.checkpoint()
            done.append("inner over")
        await anyio.lowlevel.checkpoint()
        done.append("outer over")

    gates[:] = [Gate()]

    async def between() -> None:
        await all_blocked()
        gates[0].open()

    async with open_runner([nested]) as runner:
        result = await abort_it(runner, ToolCall("nested"), between)
    assert done == ["inner over"]
    assert facts(result) == STOPPED
