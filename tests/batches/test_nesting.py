"""A runner used from inside one of its own bodies."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from batches.stage import opened

from toolrunner import Runner, ToolCall, ToolContext, tool
from toolrunner.errors import NestedRun

pytestmark = pytest.mark.anyio


def call(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments)


async def streamed(runner: Runner) -> None:
    async for _ in runner.stream([]):
        pass


async def started(runner: Runner) -> None:
    runner.start_batch([])


NESTED: dict[str, Callable[[Runner], Awaitable[object]]] = {
    "run": lambda runner: runner.run("nested"),
    "run_batch": lambda runner: runner.run_batch([call("nested")]),
    "start_batch": started,
    "stream": streamed,
}


@pytest.mark.case("E24")
@pytest.mark.parametrize("way", NESTED.values(), ids=NESTED)
async def test_run_and_run_batch_of_the_same_runner_inside_a_body_are_refused(way: Callable[[Runner], Awaitable[object]]) -> None:
    raised: list[NestedRun] = []

    @tool
    async def nested(ctx: ToolContext[Runner]) -> None:
        try:
            await way(ctx.deps)
        except NestedRun as error:
            raised.append(error)
            raise

    async with opened(nested) as runner:
        (result,) = await runner.run_batch([call("nested")], deps=runner)
    assert len(raised) == 1
    assert (result.outcome, result.code) == ("failed", "TOOL_ERROR")
    assert result.error is not None
    assert "ctx.run(name, arguments)" in result.error.message


async def test_another_runner_inside_a_body_is_nobodys_nesting() -> None:
    @tool
    async def leaf() -> str:
        return "leaf"

    async with opened(leaf) as inner:

        @tool
        async def outer() -> Any:
            return (await inner.run("leaf")).value

        async with opened(outer) as runner:
            assert (await runner.run("outer")).value == "leaf"
