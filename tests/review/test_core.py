"""What a reading of the core against its contract found: each of these was wrong once."""

import subprocess
import sys
import textwrap

import pytest

TORN_DOWN_AT_ANY_STEP = textwrap.dedent("""
    import asyncio, itertools, anyio
    from toolrunner import MemoryJournal, Runner, ToolCall, tool

    @tool(parallel_safe=True)
    async def wait(name: str) -> str:
        await anyio.sleep_forever()
        return name

    @tool(parallel_safe=True)
    def in_thread(name: str) -> str:
        return name

    async def look(call, signal):
        await asyncio.sleep(0)

    async def around(call, next_):
        return await next_(call)

    async def main(journal, name, in_batch, hooks, steps):
        runner = await Runner([wait, in_thread], journal=journal).__aenter__()
        if hooks:
            runner.pre_execute(look)
            runner.use(around)
        calls = [ToolCall(name, {"name": letter}) for letter in "ab"]
        waiting = runner.start_batch(calls) if in_batch else [asyncio.ensure_future(runner.run(call)) for call in calls]
        for _ in range(steps):
            await asyncio.sleep(0)

    for name, in_batch, hooks, steps in itertools.product(("wait", "in_thread"), (True, False), (True, False), range(14)):
        journal = MemoryJournal()
        asyncio.run(main(journal, name, in_batch, hooks, steps))
        accepted = [record.run_id for record in journal if record.type == "call/recorded"]
        settled = [record.run_id for record in journal if record.type == "call/settled"]
        assert sorted(accepted) == sorted(settled), (name, in_batch, hooks, steps)
        entered = {record.run_id for record in journal if record.type == "call/dispatched"}
        started = {record.run_id for record in journal if record.type == "call/settled" and record.result.started}
        assert started <= entered
    print("done")
""")


@pytest.mark.case("E26")
def test_a_loop_torn_down_before_any_step_of_a_call_leaves_a_result_for_every_call() -> None:
    """A task that is cancelled before its first step never takes it; whoever waited for it waited for ever."""
    argv = [sys.executable, "-W", "error", "-c", TORN_DOWN_AT_ANY_STEP]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
