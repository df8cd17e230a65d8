"""Calls made inside bodies, aborted before each step: a parent does not end before its children, and tells of what they did."""

from functools import partial

import pytest
from invariants.sweeping import SEEDS, host_sweep, sweep
from invariants.world import World, calls

from toolrunner.testing import Script, ScriptedTool

pytestmark = pytest.mark.anyio


def parent(name: str, *children: str, **script: object) -> ScriptedTool:
    options = script.pop("options", {})
    return ScriptedTool(name, Script(children=[(child, {}) for child in children], **script), **options)  # type: ignore[arg-type]


def family(name: str) -> list[ScriptedTool]:
    """This call's tool, and those of its children and theirs."""
    tools = {one.name: one for one in everybody()}
    found = [name]
    for one in found:
        found += [child for child, _ in tools[one].script.children if child not in found]
    return [tools[one] for one in found]


def everybody() -> list[ScriptedTool]:
    return [
        ScriptedTool("reads", Script(), read_only=True),
        ScriptedTool("writes", Script(changes=["a"])),
        ScriptedTool("says_nothing", Script(changes=["b"], declares=False)),
        ScriptedTool("stubborn", Script(changes=["c"], stubborn=True)),
        ScriptedTool("fails", Script(changes=["d"], error=OSError("no"))),
        ScriptedTool("sync", Script(changes=["e"], sync=True)),
        ScriptedTool("locked", Script(changes=["f"]), resources=lambda _: ["r"]),
        parent("one", "writes"),
        parent("reads_only_it_says", "writes", options={"read_only": True}),
        parent("reads_only_with_a_silent_child", "says_nothing", options={"read_only": True}),
        parent("silent", "says_nothing"),
        parent("two", "writes", "says_nothing", changes=["own"]),
        parent("with_a_stubborn_child", "stubborn", "reads"),
        parent("with_a_failing_child", "fails"),
        parent("with_a_thread", "sync"),
        parent("with_its_own_lock", "locked", options={"resources": lambda _: ["r"]}),
        parent("grandparent", "one", "reads"),
        parent("fails_after_its_child", "says_nothing", error=OSError("no")),
        parent("reads_and_fails_after_its_child", "says_nothing", error=OSError("no"), options={"read_only": True, "retry": 1}),
    ]


PARENTS = [one.name for one in everybody() if one.script.children]


@pytest.mark.parametrize("name", PARENTS)
async def test_a_call_with_children_aborted_anywhere(name: str) -> None:
    async with World(family(name)) as world:
        for seed in range(SEEDS):
            assert await sweep(world, lambda signal: world.runner.run(name, signal=signal), seed=seed) > 3
        assert await sweep(world, lambda signal: world.runner.run(name, signal=signal), mode="drain") > 3


async def test_a_batch_of_parents_aborted_anywhere() -> None:
    async with World(everybody(), max_parallel=2) as world:
        names = ("reads_only_it_says", "with_its_own_lock", "two")
        for seed in range(SEEDS):
            assert await sweep(world, lambda signal: world.runner.run_batch(calls(*names), signal=signal), seed=seed) > 3


@pytest.mark.parametrize("native", [False, True])
async def test_parents_whose_host_is_cancelled_anywhere(native: bool) -> None:
    for name in PARENTS:
        async with World(family(name)) as world:
            assert await host_sweep(world, partial(world.runner.run, name), native=native) > 3
