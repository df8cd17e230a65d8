"""Dispatch overhead: a no-op async tool with the in-memory journal, alone and against the tool paths of agent frameworks."""

import gc
import time

from benchmarks.baselines import langgraph_tools, openai_agents_tools, pydantic_ai_tools
from benchmarks.baselines.tool_paths import CALLS, Turn, of_one, per_call
from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.measure import Contender, Trial, interleave
from benchmarks.rows import Bound, row
from toolrunner import Runner, ToolCall, tool

FRAMEWORKS = (pydantic_ai_tools, openai_agents_tools, langgraph_tools)

SHARE = 10
"""Single calls run so many times as often as turns: they are short, and their bound is absolute."""


@tool(parallel_safe=True)
async def noop(x: int) -> str:
    """Do nothing."""
    return str(x)


async def plain(x: int) -> str:
    """The same without anybody in between."""
    return str(x)


async def single(runner: Runner) -> Trial:
    """One `run`, from the call to the result."""
    began = time.perf_counter()
    result = await runner.run("noop", {"x": 1})
    took = time.perf_counter() - began
    assert result.value == "1"
    return Trial(took * 1000)


async def bare() -> Trial:
    """The function awaited."""
    began = time.perf_counter()
    await plain(1)
    return Trial((time.perf_counter() - began) * 1000)


def batches(runner: Runner) -> Turn:
    """A turn of ours."""

    async def turn(calls: int) -> None:
        results = await runner.run_batch([ToolCall("noop", {"x": index}) for index in range(calls)])
        assert len(results) == calls

    return turn


def _per_call(name: str, turn: Turn) -> Contender:
    return Contender(name, lambda: per_call(turn))


def _of_one(name: str, turn: Turn) -> Contender:
    return Contender(name, lambda: of_one(turn))


async def run(order: Order) -> Report:
    """Single calls against the bare function, then batches against the frameworks that are installed."""
    absent = [one.NAME for one in FRAMEWORKS if not one.INSTALLED]
    async with Runner([noop], max_parallel=CALLS) as runner:
        alone = [Contender("toolrunner", lambda: single(runner)), Contender("the function awaited", bare)]
        own, function = await interleave(alone, order.runs * SHARE)
        turns = [_per_call("toolrunner, in a batch", batches(runner))]
        turns += [_per_call(one.NAME, one.open_turn()) for one in FRAMEWORKS if one.INSTALLED]
        # What the frameworks loaded is out of everybody's collections from here on: else each would pay for all the others.
        gc.collect()
        gc.freeze()
        batch, *others = await interleave(turns, order.runs, order.tick)
        whole = [_of_one("toolrunner, a batch of one", batches(runner))]
        whole += [_of_one(one.NAME, one.open_turn()) for one in FRAMEWORKS if one.INSTALLED]
        one, *whole_turns = await interleave(whole, order.runs)
        gc.unfreeze()
    note = f"not here: {', '.join(absent)}" if absent else ""
    rows = [row("dispatch", own, function, bound=Bound(p50=0.1), note="whole call, nothing taken off")]
    rows += [row("dispatch_turn", batch, other, bound=Bound(ratio=1 / 3), note=note) for other in others]
    rows += [row("dispatch_turn_of_one", one, turn, note="the framework's own loop included") for turn in whole_turns]
    if not others:
        rows.append(row("dispatch_turn", batch, note=note))
    return Report(rows, {"dispatch: no-op call alone": [own, function], "dispatch: per call of a turn": [batch, *others]})


DISPATCH = Benchmark("dispatch", "overhead of a call of a no-op async tool", 50, run)
