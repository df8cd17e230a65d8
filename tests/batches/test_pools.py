"""How many calls of a batch run at once."""

import random
from typing import Any

import pytest
from anyio.lowlevel import checkpoint
from batches.stage import Stage, ids, of_type, opened, step
from stillness import quiet

from toolrunner import Runner, ToolCall, tool
from toolrunner.errors import ConfigError
from toolrunner.records import Record

pytestmark = pytest.mark.anyio


@pytest.mark.case("S7")
@pytest.mark.parametrize("size", [0, 1.5, -1, True, None, "2"])
async def test_a_pool_of_no_whole_number_above_zero_is_refused(size: Any) -> None:
    with pytest.raises(ConfigError, match=r"max_parallel is .*; expected a whole number, 1 or more"):
        Runner([], max_parallel=size)
    with pytest.raises(ConfigError, match=r"max_parallel is .*; expected a whole number, 1 or more"):
        Runner.blocking([], max_parallel=size).__enter__()


@pytest.mark.case("S8")
async def test_the_pool_has_ten_places_when_nobody_says_otherwise() -> None:
    stage = Stage()
    names = [f"n{number}" for number in range(12)]
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step(name) for name in names])
        await stage.started(*names[:10])
        await quiet()
        assert stage.entered == names[:10]
        stage.end(*names)
        assert ids(await batch) == names


@pytest.mark.case("S9")
async def test_the_third_of_four_calls_in_a_pool_of_two_starts_when_the_first_has_ended() -> None:
    stage, records = Stage(), list[Record]()
    async with opened(stage.tools, max_parallel=2) as runner:
        batch = runner.start_batch([step(name) for name in "abcd"], on_event=records.append)
        a, b, c, d = batch.run_ids
        await stage.started("a", "b")
        await quiet()
        assert stage.entered == ["a", "b"]
        stage.end("a")
        await stage.started("c")
        await quiet()
        assert stage.log == ["+a", "+b", "-a", "+c"]
        stage.end("b", "c", "d")
        await batch
    seen = [(record.type, record.run_id) for record in of_type(records, "call/dispatched", "call/ended")]
    assert seen[:4] == [("call/dispatched", a), ("call/dispatched", b), ("call/ended", a), ("call/dispatched", c)]
    assert seen.index(("call/dispatched", d)) > 3


@pytest.mark.case("S10")
async def test_a_pool_of_one_runs_one_call_after_the_other() -> None:
    stage = Stage()
    async with opened(stage.tools, max_parallel=1) as runner:
        batch = runner.start_batch([step(name) for name in "abc"])
        await stage.started("a")
        await quiet()
        assert stage.entered == ["a"]
        stage.end("a", "b", "c")
        await batch
    assert stage.log == ["+a", "-a", "+b", "-b", "+c", "-c"]


@pytest.mark.case("S11")
async def test_every_batch_of_the_runner_has_a_pool_of_the_size_it_was_given() -> None:
    stage = Stage()
    async with opened(stage.tools, max_parallel=2) as runner:
        one = runner.start_batch([step(name) for name in ("a1", "a2", "a3")])
        two = runner.start_batch([step(name) for name in ("b1", "b2", "b3")])
        await stage.started("a1", "a2", "b1", "b2")
        await quiet()
        assert set(stage.entered) == {"a1", "a2", "b1", "b2"}
        stage.end("a1")
        await stage.started("a3")
        await quiet()
        assert "b3" not in stage.entered
        stage.end("a2", "a3", "b1", "b2", "b3")
        assert ids([*await one, *await two]) == ["a1", "a2", "a3", "b1", "b2", "b3"]


async def test_a_tool_that_changes_its_mind_about_being_parallel_safe_is_taken_at_one_word() -> None:
    seen = list[list[bool]]()
    words = random.Random(7)  # noqa: S311 - no secret; the same words in every run

    @tool(parallel_safe=lambda _: words.random() < 0.7)
    async def fickle() -> None:
        for _ in range(3):
            seen.append(list(batch._run._acting.values()))
            await checkpoint()

    async with opened(fickle) as runner:
        batch = runner.start_batch([ToolCall("fickle") for _ in range(50)])
        await batch
    assert [acting for acting in seen if any(acting) and len(acting) > 1] == []
