"""One call of every kind, with everything that may stand around it, aborted before each step of anything."""

import contextlib
import contextvars
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from invariants.sweeping import SEEDS, sweep
from invariants.world import KINDS, OwnError, World

from toolrunner import AbortController, Reply, ask, block, cancel, replace
from toolrunner.loops import spawn_detached
from toolrunner.pipeline.wrap import NextMisused
from toolrunner.testing import ScriptedApprover

pytestmark = pytest.mark.anyio

Around = Callable[[World], object]


def nothing(world: World) -> None: ...


def hooks(world: World) -> None:
    async def pre(call: Any, signal: Any) -> None:
        await checkpoint()

    async def post(call: Any, result: Any, signal: Any) -> None:
        await checkpoint()

    world.runner.pre_execute(pre)
    world.runner.post_execute(post)
    world.runner.guard(lambda call: None)


def wrappers(world: World) -> None:
    async def outer(call: Any, next_: Any) -> Any:
        await checkpoint()
        result = await next_(call, signal=AbortController().signal)
        await checkpoint()
        return result

    async def inner(call: Any, next_: Any) -> Any:
        try:
            return await next_(call)
        finally:
            await checkpoint()

    world.runner.use(outer)
    world.runner.use(inner)


def wrapper_that_aborts(world: World) -> None:
    async def impatient(call: Any, next_: Any) -> Any:
        mine = AbortController()
        async with anyio.create_task_group() as tasks:

            async def later() -> None:
                await checkpoint()
                await checkpoint()
                await checkpoint()
                mine.abort("impatient")

            tasks.start_soon(later)
            return await next_(call, signal=mine.signal)

    world.runner.use(impatient)
    world.probe_may_fail = True


def wrapper_that_raises_before(world: World) -> None:
    async def broken(call: Any, next_: Any) -> Any:
        await checkpoint()
        raise OwnError("before")

    world.runner.use(broken)
    world.probe_may_fail = True


def wrapper_that_raises_after(world: World) -> None:
    async def broken(call: Any, next_: Any) -> Any:
        await next_(call)
        await checkpoint()
        raise OwnError("after")

    world.runner.use(broken)
    world.probe_may_fail = True


def wrapper_that_does_not_wait(world: World) -> None:
    async def careless(call: Any, next_: Any) -> Any:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(next_, call)
            await checkpoint()
            tasks.cancel_scope.cancel()
        return Reply("made up")

    world.runner.use(careless)
    world.answers_are_replaced = True


def wrapper_that_leaves_it_running(world: World) -> None:
    async def careless(call: Any, next_: Any) -> Any:
        spawn_detached(lambda: left(next_, call), "left by a wrapper", contextvars.copy_context())
        await checkpoint()
        return Reply("made up")

    async def left(next_: Any, call: Any) -> None:
        with contextlib.suppress(NextMisused):
            await next_(call)

    world.runner.use(careless)
    world.answers_are_replaced = True


def wrapper_that_answers(world: World) -> None:
    async def cached(call: Any, next_: Any) -> Any:
        await checkpoint()
        return Reply("from the cache")

    world.runner.use(cached)
    world.answers_are_replaced = True


def pre_hook_that_asks(world: World) -> None:
    async def pre(call: Any, signal: Any) -> Any:
        await checkpoint()
        return ask("may it?") if call.name != "probe" else None

    world.runner.pre_execute(pre)


def pre_hook_that_raises(world: World) -> None:
    async def pre(call: Any, signal: Any) -> Any:
        await checkpoint()
        raise OwnError("pre")

    world.runner.pre_execute(pre)
    world.probe_may_fail = True


def pre_hook_that_cancels(world: World) -> None:
    async def pre(call: Any, signal: Any) -> Any:
        await checkpoint()
        return cancel("enough")

    world.runner.pre_execute(pre)
    world.probe_may_fail = True


def post_hook_that_raises(world: World) -> None:
    async def post(call: Any, result: Any, signal: Any) -> Any:
        await checkpoint()
        raise OwnError("post")

    world.runner.post_execute(post)
    world.probe_may_fail = True


def post_hook_that_blocks(world: World) -> None:
    async def post(call: Any, result: Any, signal: Any) -> Any:
        await checkpoint()
        return block("not for you")

    world.runner.post_execute(post)
    world.answers_are_replaced = world.probe_may_fail = True


def post_hook_that_replaces(world: World) -> None:
    async def post(call: Any, result: Any, signal: Any) -> Any:
        await checkpoint()
        return replace("something else")

    world.runner.post_execute(post)


AROUND: dict[str, Around] = {fn.__name__: fn for fn in (
    nothing, hooks, wrappers, wrapper_that_aborts, wrapper_that_raises_before, wrapper_that_raises_after,
    wrapper_that_does_not_wait, wrapper_that_leaves_it_running,
    wrapper_that_answers, pre_hook_that_asks, pre_hook_that_raises, pre_hook_that_cancels,
    post_hook_that_raises, post_hook_that_blocks, post_hook_that_replaces,
)}  # fmt: skip


@pytest.mark.parametrize("around", AROUND)
async def test_one_call_of_any_kind_aborted_anywhere(around: str) -> None:
    for kind in KINDS.values():
        async with World([kind.made("t")], approver=ScriptedApprover()) as world:
            AROUND[around](world)
            for seed in range(SEEDS if around in ("nothing", "wrappers") else 1):
                assert await sweep(world, lambda signal: world.runner.run("t", signal=signal), seed=seed) > 2


@pytest.mark.parametrize("around", ["nothing", "hooks", "wrappers", "pre_hook_that_asks"])
async def test_one_call_of_any_kind_drained_anywhere(around: str) -> None:
    for kind in KINDS.values():
        async with World([kind.made("t")], approver=ScriptedApprover()) as world:
            AROUND[around](world)
            assert await sweep(world, lambda signal: world.runner.run("t", signal=signal), mode="drain") > 2
