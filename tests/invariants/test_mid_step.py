"""What an observer does in the middle of a step: at each record in turn, it aborts, raises, replaces a tool or starts a close.

Steps are where other tasks come in; records are made between two lines of one step, so these are windows of their own.
"""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from invariants.journals import SlowJournal
from invariants.sweeping import checked
from invariants.world import BOUND, KINDS, World, calls

from toolrunner import AbortController
from toolrunner.facts import AbortReason, Source
from toolrunner.testing import Script, ScriptedApprover, ScriptedTool

pytestmark = pytest.mark.anyio

NAMES = ("writes", "is_tried_again", "parent", "sync", "fails_after_its_change", "command_", "says_nothing")


def tools(names: tuple[str, ...]) -> list[ScriptedTool]:
    made = [kind.made(name.replace(" ", "_")) for name, kind in KINDS.items() if name.replace(" ", "_") in (*names, "reads")]
    made.append(ScriptedTool("parent", Script(children=[("writes", {}), ("says_nothing", {})], changes=["own"])))
    made.append(ScriptedTool("says_nothing", Script(changes=["quietly"], declares=False)))
    return made


class Here(Exception):
    """What the observer raises."""


def abort(world: World, caller: AbortController) -> None:
    caller.abort("in the middle")


def drain(world: World, caller: AbortController) -> None:
    caller.abort("in the middle", mode="drain")


def fail(world: World, caller: AbortController) -> None:
    raise Here


def replace_a_tool(world: World, caller: AbortController) -> None:
    again = ScriptedTool("writes", Script(changes=["by the new one"]))
    world.tools["writes"].script = again.script
    again.entries = world.tools["writes"].entries
    world.runner.replace(again.tool)


def start_another(world: World, caller: AbortController) -> None:
    world.runner.start_batch(calls("reads"))


DOINGS: dict[str, Callable[[World, AbortController], None]] = {
    fn.__name__: fn for fn in (abort, drain, fail, replace_a_tool, start_another)
}


async def rounds(names: tuple[str, ...], doing: str, **settings: Any) -> int:
    """Do it at the 1st, 2nd, 3rd ... record, until a round has fewer."""
    number = 0
    while True:
        number += 1
        done = 0
        async with World(tools(names), **settings) as world:
            caller = AbortController()

            def observe(record: Any) -> None:
                nonlocal done
                done += 1
                if done == number:  # noqa: B023 - it is called in this round only
                    DOINGS[doing](world, caller)  # noqa: B023 - the same

            stop = world.runner.on_record(observe)
            with anyio.fail_after(BOUND):
                results = await world.runner.run_batch(calls(*names), signal=caller.signal)
                world.is_one_batch = doing != "start_another"
                stop()
                await checked(world, results if doing != "start_another" else None, f"{doing} at record {number}")
        if done < number:
            return number


@pytest.mark.parametrize("doing", DOINGS)
async def test_an_observer_that_acts_at_any_record(doing: str, caplog: pytest.LogCaptureFixture) -> None:
    assert await rounds(NAMES, doing) > 20


@pytest.mark.parametrize("doing", ["abort", "drain", "replace_a_tool"])
async def test_an_observer_that_acts_at_any_record_of_an_asked_batch_with_a_slow_journal(doing: str) -> None:
    assert await rounds(NAMES[:4], doing, journal=SlowJournal(), ask=True, approver=ScriptedApprover()) > 20


def install(where: str, world: World, act: Callable[[], object]) -> None:
    """Have `act` called from this place of each call, in the middle of a step of the runner's."""

    async def hook(*_: Any) -> None:
        act()

    async def wrapper(call: Any, next_: Any) -> Any:
        act()
        return await next_(call)

    def guard(call: Any) -> None:
        act()

    def observe(record: Any) -> None:
        if record.type == "call/answered":
            act()

    runner = world.runner
    {
        "pre": lambda: runner.pre_execute(hook),
        "post": lambda: runner.post_execute(hook),
        "guard": lambda: runner.guard(guard),
        "wrapper": lambda: runner.use(wrapper),
        "answer": lambda: runner.on_record(observe),
    }.get(where, lambda: None)()


@pytest.mark.parametrize("where", ["pre", "post", "guard", "wrapper", "answer", "resources", "parallel_safe"])
async def test_a_batch_aborted_from_inside_one_of_its_calls(where: str) -> None:
    caller = AbortController()

    def act() -> None:
        caller.abort("from inside")

    def resources(_: Any) -> list[str]:
        if where == "resources":
            act()
        return []

    def safe(_: Any) -> bool:
        if where == "parallel_safe":
            act()
        return True

    made = [ScriptedTool(name, Script(changes=[name]), resources=resources, parallel_safe=safe) for name in ("a", "b")]
    async with World(made, ask=where == "answer", approver=ScriptedApprover()) as world:
        install(where, world, act)
        results = await world.runner.run_batch(calls("a", "b"), signal=caller.signal)
        assert results[0].stop is not None
        assert results[0].started is (where == "post")
        await checked(world, results, f"aborted by {where}")


async def test_a_stop_by_each_source_while_a_body_runs_is_told_as_that_source() -> None:
    async with World([ScriptedTool("t", Script(changes=["a"]))]) as world:
        for source in (Source.CALLER, Source.COST, Source.HOST):
            caller = AbortController(source=source)
            world.runner.on_record(lambda record: record.type == "call/dispatched" and caller.abort("why"))  # noqa: B023
            result = await world.runner.run("t", signal=caller.signal)
            assert result.stop is not None
            assert AbortReason(result.stop.source, result.stop.reason) == AbortReason(source, "why")
