"""A drain closes what has not started, in every row before the moment of action, and lets what has started finish."""

from collections.abc import Callable
from typing import Any

import pytest
from pipeline.bench import (
    STOPPED,
    SUCCEEDED,
    check_stopped_early,
    facts,
    only,
    open_runner,
    stop_of,
)
from stillness import all_blocked

from toolrunner import AbortController, AbortSignal, Decision, Policy, ToolCall, ToolContext, ToolResult, tool
from toolrunner.facts import StopPhase
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio

entered: list[str] = []
gates: list[Gate] = []


@pytest.fixture(autouse=True)
def nothing_yet() -> None:
    entered.clear()
    gates.clear()


@tool(resources=lambda arguments: ["one"])
async def work(ctx: ToolContext[Any], name: str) -> str:
    """Hold a lock; `holder` until its gate opens."""
    entered.append(name)
    if name == "holder":
        await gates[-1].wait()
    return f"{name} {ctx.signal.aborted}"


WORK = ToolCall("work", {"name": "a"})


class Asked:
    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def decide(self, request: Any, signal: AbortSignal) -> Decision:
        await self._gate.wait()
        return Decision.allow()


async def drained_at(runner: Any, gate: Gate) -> ToolResult:
    stop = AbortController()
    batch = runner.start_batch([WORK], signal=stop.signal)
    await gate.reached()
    assert stop.abort("enough", mode="drain")
    await all_blocked()
    gate.open()
    return only(await batch.results())


async def test_a_drain_before_the_call_was_made_closes_it() -> None:
    stop = AbortController()
    stop.abort("enough", mode="drain")
    async with open_runner([work]) as runner:
        check_stopped_early(await runner.run(WORK, signal=stop.signal))
    assert entered == []


async def test_a_drain_during_a_pre_hook_closes_the_call() -> None:
    async with open_runner([work]) as runner:
        gate = Gate()

        async def pre(call: ToolCall, signal: AbortSignal) -> None:
            await gate.wait()
            assert signal.aborted

        runner.pre_execute(pre)
        check_stopped_early(await drained_at(runner, gate))
    assert entered == []


async def test_a_drain_during_an_approval_closes_the_call() -> None:
    gate = Gate()
    async with open_runner([work], policy=Policy.of(ask=["work"]), approver=Asked(gate)) as runner:
        check_stopped_early(await drained_at(runner, gate))
    assert entered == []


async def test_a_drain_in_a_guard_closes_the_call() -> None:
    stop = AbortController()

    def guard(call: ToolCall) -> None:
        stop.abort("enough", mode="drain")

    async with open_runner([work]) as runner:
        runner.guard(guard)
        check_stopped_early(await runner.run(WORK, signal=stop.signal))
    assert entered == []


async def test_a_drain_during_the_wait_for_a_lock_closes_the_call() -> None:
    async with open_runner([work]) as runner:
        gates.append(Gate())
        holder = runner.start_batch([ToolCall("work", {"name": "holder"})])
        await gates[-1].reached()
        stop = AbortController()
        batch = runner.start_batch([WORK], signal=stop.signal)
        await all_blocked()
        stop.abort("enough", mode="drain")
        check_stopped_early(only(await batch.results()))
        gates[-1].open()
        await holder.results()
    assert entered == ["holder"]


@pytest.mark.parametrize("whose", ["caller", "wrapper"])
async def test_a_drain_in_a_wrapper_closes_the_call(whose: str) -> None:
    stop, own = AbortController(), AbortController()

    async def wrap(call: ToolCall, go_on: Any) -> Any:
        (stop if whose == "caller" else own).abort("enough", mode="drain")
        return await go_on(call, signal=own.signal)

    async with open_runner([work]) as runner:
        runner.use(wrap)
        result = await runner.run(WORK, signal=stop.signal)
    check_stopped_early(result, source="caller" if whose == "caller" else "wrapper:wrap")
    assert entered == []


class SlowJournal:
    """`call/dispatched` becomes durable when the gate opens."""

    error = None

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def append(self, *records: Any) -> Any:
        return self._gate.wait() if any(record.type == "call/dispatched" for record in records) else None

    async def aclose(self) -> None:
        pass


async def test_a_drain_while_the_dispatch_becomes_durable_closes_the_call() -> None:
    gate = Gate()
    async with open_runner([work], journal=SlowJournal(gate)) as runner:
        check_stopped_early(await drained_at(runner, gate))
        assert facts(await runner.run(WORK)) == SUCCEEDED
    assert entered == ["a"]


async def started(runner: Any, **options: Any) -> tuple[Any, AbortController]:
    gates.append(Gate())
    stop = AbortController()
    batch = runner.start_batch([ToolCall("work", {"name": "holder"}), WORK], signal=stop.signal, **options)
    await gates[-1].reached()
    return batch, stop


async def test_a_started_body_is_not_told_of_a_drain_and_succeeds() -> None:
    async with open_runner([work]) as runner:
        batch, stop = await started(runner)
        stop.abort("enough", mode="drain")
        await all_blocked()
        gates[-1].open()
        first, second = await batch.results()
    assert facts(first) == SUCCEEDED
    assert (first.value, first.stop, first.is_error) == ("holder False", None, False)
    check_stopped_early(second)
    assert entered == ["holder"]


async def test_a_wrappers_drain_lets_its_body_finish() -> None:
    own = AbortController()

    async def wrap(call: ToolCall, go_on: Any) -> Any:
        return await go_on(call, signal=own.signal)

    async with open_runner([work]) as runner:
        runner.use(wrap)
        batch, _ = await started(runner)
        own.abort("enough", mode="drain")
        await all_blocked()
        gates[-1].open()
        first, second = await batch.results()
    assert facts(first) == SUCCEEDED
    assert first.value == "holder False"
    check_stopped_early(second, source="wrapper:wrap")


@pytest.mark.parametrize("where", ["wrapper", "post"])
async def test_a_drain_after_the_body_changes_nothing(where: str) -> None:
    async with open_runner([work]) as runner:
        gate = Gate()

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            result = await go_on(call)
            await gate.wait()
            return result

        async def post(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
            await gate.wait()

        register: dict[str, Callable[[], object]] = {
            "wrapper": lambda: runner.use(wrap),
            "post": lambda: runner.post_execute(post),
        }
        register[where]()
        result = await drained_at(runner, gate)
    assert facts(result) == SUCCEEDED
    assert (result.value, result.stop) == ("a False", None)


async def test_an_immediate_abort_upgrades_a_drain_and_keeps_its_reason() -> None:
    async with open_runner([work]) as runner:
        batch, stop = await started(runner)
        assert stop.abort("please finish", mode="drain")
        assert not stop.abort("please finish again", mode="drain")
        await all_blocked()
        assert stop.abort("no, now")
        first, second = await batch.results()
    assert facts(first) == STOPPED
    assert stop_of(first) == ("caller", "please finish", StopPhase.RUNNING)
    check_stopped_early(second, "please finish")
