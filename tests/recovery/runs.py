"""Real runs, and the records that a journal has of them: what the tests of recovery cut at every point.

A body leaves the truth where no journal is involved: in `World.made`, in the very step in which it makes its change.
"""

import random
from dataclasses import dataclass, field, replace
from typing import Any, final

import anyio
from stillness import quiet

from toolrunner import AbortController, MemoryJournal, Policy, Runner, ToolCall, ToolContext, ToolError, ToolResult, Toolset, tool
from toolrunner.policy import ApprovalRequest, Decision
from toolrunner.records import CallSettled, Record
from toolrunner.tools import RetryPolicy

BOUND = 10.0
"""Seconds for a run whose waits are all gates."""


@final
@dataclass
class World:
    """What the bodies of one run really did, and what was recorded of it."""

    made: list[tuple[str, str]] = field(default_factory=list)
    """(run id, target) of each change, in order."""
    entered: list[str] = field(default_factory=list)
    over: list[str] = field(default_factory=list)
    """Bodies that came to their own end."""
    records: list[Record] = field(default_factory=list)
    results: dict[str, ToolResult] = field(default_factory=dict)
    at_last: anyio.Event = field(default_factory=anyio.Event)
    """The body that is tried again has come to its end."""

    def tools(self) -> Toolset:  # noqa: C901 - one body of each kind
        @tool(parallel_safe=True)
        async def write(target: str, ctx: ToolContext[Any]) -> str:
            self.entered.append(ctx.run_id)
            async with ctx.effect("write", target) as effect:
                await anyio.lowlevel.checkpoint()
                self.made.append((ctx.run_id, target))
                effect.receipt = f"receipt of {target}"
            self.over.append(ctx.run_id)
            return target

        @tool(parallel_safe=True)
        async def quiet(ctx: ToolContext[Any]) -> str:
            self.entered.append(ctx.run_id)
            self.made.append((ctx.run_id, "quiet"))
            self.over.append(ctx.run_id)
            return "done"

        @tool(parallel_safe=True)
        async def twice(ctx: ToolContext[Any], target: str) -> str:
            self.entered.append(ctx.run_id)
            for part in ("1", "2"):
                async with ctx.effect("write", f"{target}/{part}"):
                    self.made.append((ctx.run_id, f"{target}/{part}"))
            raise ToolError("no")

        @tool(parallel_safe=True)
        async def parent(ctx: ToolContext[Any]) -> str:
            self.entered.append(ctx.run_id)
            await ctx.run("write", {"target": "of the child"})
            await ctx.run("quiet", {})
            self.over.append(ctx.run_id)
            return "parent"

        @tool(parallel_safe=True)
        async def waits(ctx: ToolContext[Any]) -> str:
            self.entered.append(ctx.run_id)
            async with ctx.effect("write", "never"):
                await anyio.sleep_forever()
            return ""

        @tool(parallel_safe=True, idempotent=True, retry=RetryPolicy(attempts=3, wait_initial=0.001, wait_max=0.001))
        async def flaky(ctx: ToolContext[Any]) -> str:
            self.entered.append(ctx.run_id)
            self.made.append((ctx.run_id, "flaky"))
            if self.entered.count(ctx.run_id) < 2:
                raise ToolError("once more")
            self.over.append(ctx.run_id)
            self.at_last.set()
            return "at last"

        return Toolset([write, quiet, twice, parent, waits, flaky])


class Approver:
    """Allows all but what is to be denied; has other arguments run where it says so."""

    concurrent = True

    async def decide(self, request: ApprovalRequest, signal: object) -> Decision | None:
        del signal
        arguments = request.arguments
        assert isinstance(arguments, dict)
        if arguments.get("target") == "denied":
            return Decision.deny("not this one")
        if arguments.get("target") == "changed":
            return Decision.allow(arguments={"target": "instead"})
        return Decision.allow()


CALLS = (
    ToolCall("write", {"target": "a"}, call_id="a", idempotency_key="k"),
    ToolCall("quiet", {}, call_id="b"),
    ToolCall("twice", {"target": "t"}, call_id="c"),
    ToolCall("parent", {}, call_id="d"),
    ToolCall("waits", {}, call_id="e"),
    ToolCall("flaky", {}, call_id="f"),
    ToolCall("write", {"target": "denied"}, call_id="g"),
    ToolCall("write", {"target": "changed"}, call_id="h"),
    ToolCall("write", {"wrong": 1}, call_id="i"),
    ToolCall("write", "no json", call_id="j"),
    ToolCall("unknown", {}, call_id="k"),
    ToolCall("write", {"target": "a"}, call_id="l", idempotency_key="k"),
)
"""One of each kind: with effects, without, failed, with children, stopped, retried, denied, changed, refused, replayed."""


async def played() -> World:
    """One run of `CALLS`, aborted when only the one that waits is left; its records and what it really did."""
    world, journal, stop = World(), MemoryJournal(), AbortController()
    with anyio.fail_after(BOUND):
        async with Runner(
            world.tools(), journal=journal, policy=Policy.of(ask=["write"], allow=["*"]), approver=Approver()
        ) as runner:
            batch = runner.start_batch(CALLS, signal=stop.signal)
            await world.at_last.wait()
            await anyio.wait_all_tasks_blocked()
            stop.abort("enough")
            await batch.results()
            world.records = list(journal)
            world.results = {record.run_id: record.result for record in world.records if isinstance(record, CallSettled)}
    outcomes = {one.call_id: str(one.code or one.outcome) for one in world.results.values() if one.call_id is not None}
    assert outcomes == MEANT
    return world


async def played_at_random(seed: int) -> World:
    """Some of `CALLS`, in any order and number, aborted when any record is written; also after the last one."""
    dice = random.Random(seed)  # noqa: S311 - repeatable, and no secret
    world, journal, stop = World(), MemoryJournal(), AbortController()
    calls = [replace(call, call_id=str(index)) for index, call in enumerate(dice.choices(CALLS, k=dice.randint(1, 8)))]
    left = dice.randint(1, 10 * len(calls))

    def count(_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            stop.abort("enough")

    async def at_the_latest() -> None:
        await quiet()
        await anyio.sleep(0.01)  # a retry waits for a millisecond
        await quiet()
        stop.abort("enough")

    with anyio.fail_after(BOUND):
        settings: dict[str, Any] = {"policy": Policy.of(ask=["write"], allow=["*"]), "approver": Approver()}
        async with Runner(world.tools(), journal=journal, max_parallel=dice.randint(1, 8), **settings) as runner:
            runner.on_record(count)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(at_the_latest)
                await runner.run_batch(calls, signal=stop.signal)
            world.records = list(journal)
    world.results = {record.run_id: record.result for record in world.records if isinstance(record, CallSettled)}
    return world


MEANT = {
    "a": "succeeded", "b": "succeeded", "c": "TOOL_ERROR", "d": "succeeded", "e": "ABORTED", "f": "ABORTED", "g": "DENIED",
    "h": "ABORTED", "i": "INVALID_ARGUMENTS", "j": "INVALID_ARGUMENTS", "k": "UNKNOWN_TOOL", "l": "succeeded",
}  # fmt: skip
"""What becomes of each call. (What ended before the abort and settles after it is told as aborted: row 10.)"""
