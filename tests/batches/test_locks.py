"""What calls of all batches of a runner share: limits of a tool, and resources."""

import anyio
import pytest
from batches.stage import Stage, ids, opened, step
from stillness import quiet

from toolrunner import ToolCall, tool
from toolrunner.tools import Resource

pytestmark = pytest.mark.anyio


async def test_a_tools_own_limit_holds_over_all_batches() -> None:
    stage = Stage()

    @tool(parallel_safe=True, max_concurrency=2)
    async def narrow(name: str) -> str:
        return await stage.play(name)

    calls = [ToolCall("narrow", {"name": name}) for name in "abcd"]
    async with opened(stage.tools, narrow) as runner:
        one = runner.start_batch([*calls[:2], step("x")])
        await stage.started("a", "b", "x")
        two = runner.start_batch(calls[2:])
        await quiet()
        assert stage.entered == ["a", "b", "x"]
        stage.end("b")
        await stage.started("c")
        await quiet()
        assert "d" not in stage.entered
        stage.end("a", "c", "d", "x")
        await one
        await two
    assert stage.entered[-1] == "d"


async def test_readers_of_a_resource_share_it_and_a_writer_has_it_alone() -> None:
    stage = Stage()

    @tool(parallel_safe=True, resources=lambda a: [Resource(a["path"], "read")])
    async def read(name: str, path: str) -> str:
        return await stage.play(name)

    @tool(parallel_safe=True, resources=lambda a: [a["path"]])
    async def write(name: str, path: str) -> str:
        return await stage.play(name)

    def call(kind: str, name: str, path: str = "p") -> ToolCall:
        return ToolCall(kind, {"name": name, "path": path}, call_id=name)

    async with opened(read, write) as runner:
        batch = runner.start_batch(
            [call("read", "r1"), call("read", "r2"), call("write", "w1"), call("read", "r3"), call("write", "w2", "q")]
        )
        await stage.started("r1", "r2", "w2")
        await quiet()
        # r3 does not overtake the writer that asked before it; w2 is about something else.
        assert set(stage.entered) == {"r1", "r2", "w2"}
        stage.end("r1")
        await quiet()
        assert "w1" not in stage.entered
        stage.end("r2")
        await stage.started("w1")
        await quiet()
        assert "r3" not in stage.entered
        stage.end("w1", "w2", "r3")
        assert ids(await batch) == ["r1", "r2", "w1", "r3", "w2"]
    assert stage.entered[-1] == "r3"


async def test_locks_hold_between_batches_and_single_calls() -> None:
    stage = Stage()

    @tool(resources=lambda _: ["db"])
    async def write(name: str) -> str:
        return await stage.play(name)

    async with opened(write) as runner:
        one = runner.start_batch([ToolCall("write", {"name": "a"})])
        await stage.started("a")  # which of two new tasks runs first is the loop's choice, and trio's is random
        two = runner.start_batch([ToolCall("write", {"name": "b"})])
        await quiet()
        assert stage.entered == ["a"]
        stage.end("a", "b")
        await one
        await two
    assert stage.log == ["+a", "-a", "+b", "-b"]


async def test_two_calls_that_want_two_locks_in_opposite_order_both_end() -> None:
    @tool(parallel_safe=True, resources=lambda a: list(a["keys"]))
    async def write(keys: list[str]) -> list[str]:
        await anyio.lowlevel.checkpoint()
        return keys

    orders = [["x", "y"], ["y", "x"]] * 20
    async with opened(write) as runner:
        results = await runner.run_batch([ToolCall("write", {"keys": keys}) for keys in orders])
    assert [result.value for result in results] == orders
