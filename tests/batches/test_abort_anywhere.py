"""abort() from wherever somebody may call it: it never raises, never blocks, and the first cause stays the cause."""

import asyncio
import gc
import os
import signal
import threading
from typing import Any

import anyio
import pytest
from batches.stage import Stage, opened, step, until

from toolrunner import AbortController, AbortSignal, Runner, ToolCall, ToolContext, ToolResult, shell, tool
from toolrunner.records import Record

pytestmark = [pytest.mark.anyio, pytest.mark.case("E29")]


async def test_a_signal_handler_may_abort() -> None:
    stage, controller = Stage(), AbortController()
    before = signal.signal(signal.SIGUSR1, lambda *_: controller.abort("SIGUSR1"))
    try:
        async with opened(stage.tools) as runner:
            batch = runner.start_batch([step("a")], signal=controller.signal)
            await stage.started("a")
            os.kill(os.getpid(), signal.SIGUSR1)
            (result,) = await batch
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (result.outcome, result.ended) == ("aborted", "stopped")
    assert result.stop is not None
    assert result.stop.reason == "SIGUSR1"


async def test_a_signal_handler_that_interrupts_an_abort_may_abort_too() -> None:
    controller, deep = AbortController(), list[bool]()

    def nested(*_: object) -> None:
        deep.append(controller.abort("from inside"))

    before = signal.signal(signal.SIGUSR1, nested)
    try:
        for _ in range(200):
            signal.raise_signal(signal.SIGUSR1)
            controller.abort("from outside")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert deep[0] is True
    assert not any(deep[1:])
    assert controller.signal.reason is not None
    assert controller.signal.reason.text == "from inside"


async def test_a_finalizer_may_abort() -> None:
    stage, controller = Stage(), AbortController()

    class Connection:
        def __del__(self) -> None:
            controller.abort("the connection went away")

    async with opened(stage.tools) as runner:
        connection = [Connection()]
        connection.append(connection)  # type: ignore[arg-type]  # a cycle, so that the collector finalizes it, wherever that happens to run
        batch = runner.start_batch([step("a")], signal=controller.signal)
        await stage.started("a")
        del connection
        gc.collect()
        (result,) = await batch
    assert result.stop is not None
    assert result.stop.reason == "the connection went away"


async def test_fifty_threads_may_abort_at_once_and_one_of_them_is_the_first() -> None:
    stage, controller = Stage(), AbortController()
    barrier, won = threading.Barrier(50), list[str]()

    def abort(name: str) -> None:
        barrier.wait(60)
        if controller.abort(name):
            won.append(name)

    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step(name) for name in "abcde"], signal=controller.signal)
        await stage.started(*"abcde")
        threads = [threading.Thread(target=abort, args=(f"thread {number}",)) for number in range(50)]
        for thread in threads:
            thread.start()
        results = await batch
        await until(lambda: not any(thread.is_alive() for thread in threads))
        for thread in threads:
            thread.join()
    assert len(won) == 1
    assert {result.stop.reason for result in results if result.stop} == set(won)
    assert [result.ended for result in results] == ["stopped"] * 5


async def test_an_abort_from_a_worker_thread_reaches_a_body_that_sleeps() -> None:
    stage, controller = Stage(), AbortController()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a")], signal=controller.signal)
        await stage.started("a")
        assert await anyio.to_thread.run_sync(controller.abort)
        assert (await batch)[0].outcome == "aborted"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_abort_after_the_loop_closed_is_stored_and_raises_nothing(backend: str) -> None:
    controller, called = AbortController(), list[str]()
    signals: list[AbortSignal] = []

    async def main() -> None:
        merged = AbortSignal.any(controller.signal, AbortController().signal)
        merged.on_abort(lambda: called.append("too late"))
        controller.signal.on_abort(lambda: called.append("too late"))
        signals.append(merged)

    anyio.run(main, backend=backend)
    assert controller.abort("late") is True
    assert controller.abort("later") is False
    assert signals[0].aborted
    assert signals[0].reason is not None
    assert signals[0].reason.text == "late"
    assert called == []


async def test_a_body_may_abort_its_own_batch() -> None:
    controller = AbortController()

    @tool
    async def suicidal(ctx: ToolContext[Any]) -> None:
        controller.abort("from the body")
        assert ctx.signal.aborted
        await anyio.sleep_forever()

    async with opened(suicidal) as runner:
        (result,) = await runner.run_batch([ToolCall("suicidal")], signal=controller.signal)
    assert (result.outcome, result.ended) == ("aborted", "stopped")


async def test_callbacks_run_once_on_their_loop_and_never_inside_abort() -> None:
    controller, calls = AbortController(), list[int]()
    with anyio.fail_after(60):
        unsubscribe = controller.signal.on_abort(lambda: calls.append(0))
        unsubscribe()
        controller.signal.on_abort(lambda: calls.append(threading.get_ident()))
        thread = threading.Thread(target=controller.abort)
        thread.start()
        await until(lambda: calls)
        thread.join()
        controller.abort("again")
        controller.signal.on_abort(lambda: calls.append(1))
        assert calls == [threading.get_ident()]
        await until(lambda: len(calls) == 2)
    assert calls == [threading.get_ident(), 1]


@pytest.mark.parametrize("from_thread", [False, True], ids=["from the loop", "from a thread"])
@pytest.mark.parametrize("kind", ["command", "body"])
def test_under_a_bare_asyncio_run_an_abort_is_delivered_all_the_same(
    kind: str, from_thread: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Most hosts: nobody has told sniffio, which anyio asks, that this is asyncio, and a callback runs in no task."""
    controller, seen = AbortController(), list[str]()

    async def main() -> ToolResult:
        started = asyncio.Event()
        stage = Stage()

        def observe(record: Record) -> None:
            seen.append(record.type)
            if record.type == "output":
                started.set()

        async with Runner([shell, stage.tools]) as runner:
            call = ToolCall("shell", {"command": "echo ready; sleep 613"}) if kind == "command" else step("a")
            batch = runner.start_batch([call], signal=controller.signal, on_event=observe)
            await asyncio.wait_for(started.wait() if kind == "command" else stage.started("a"), 10)
            if from_thread:
                thread = threading.Thread(target=controller.abort)
                thread.start()
                thread.join()
            else:
                controller.abort()
            return (await asyncio.wait_for(batch.results(), 10))[0]

    result = asyncio.run(main())
    assert (result.outcome, result.ended, result.still_running) == ("aborted", "stopped", ())
    assert result.stop is not None
    assert result.stop.delivered_at is not None
    assert seen.count("call/stop_delivered") == 1
    assert caplog.text == ""
