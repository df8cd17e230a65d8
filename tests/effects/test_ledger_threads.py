"""The ledger under a plain `with`: in a sync body's thread, and on the loop where nothing has to be waited for."""

import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from effects.ledgers import APPLIED, NOT_APPLIED, UNKNOWN, Journal, ledger_of
from stillness import all_blocked

from toolrunner.effects import EffectLedger
from toolrunner.errors import ConfigError
from toolrunner.loops import poster

pytestmark = pytest.mark.anyio


class Threads:
    """A worker thread as the runner has them: it calls into the loop and blocks until that was done."""

    def __init__(self) -> None:
        self._post = poster()

    def loop_call(self, fn: Callable[[], Any]) -> Any:
        box: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

        def call() -> None:
            try:
                box.put((fn(), None))
            except BaseException as error:
                box.put((None, error))

        self._post(call)
        value, error = box.get(timeout=60)
        if error is not None:
            raise error
        return value

    async def run(self, fn: Callable[[], None]) -> BaseException | None:
        done = anyio.Event()
        raised: list[BaseException] = []

        def body() -> None:
            try:
                fn()
            except BaseException as error:
                raised.append(error)
            finally:
                self._post(done.set)

        thread = threading.Thread(target=body)
        thread.start()
        with anyio.fail_after(60):
            await done.wait()
        thread.join()
        return raised[0] if raised else None


async def test_a_sync_body_records_its_act_on_the_loop() -> None:
    journal, threads = Journal(), Threads()
    loop_thread = threading.get_ident()
    seen: list[bool] = []

    def append(record: Any) -> None:
        seen.append(threading.get_ident() == loop_thread)
        journal.append(record)

    ledger = EffectLedger("run1", append, loop_call=threads.loop_call)

    def body() -> None:
        with ledger.declare("write", "/w/a", shield=True) as effect:
            effect.receipt = "done"
        with ledger.declare("write", "/w/b"):
            raise ValueError("half")

    assert isinstance(await threads.run(body), ValueError)
    assert [(record.stage, record.receipt) for record in ledger.records] == [(APPLIED, "done"), (UNKNOWN, None)]
    assert seen == [True] * 4


async def test_a_sync_body_waits_until_its_plan_is_durable() -> None:
    gate, threads = anyio.Event(), Threads()
    journal, planned = Journal(gate), anyio.Event()

    def append(record: Any) -> Awaitable[None] | None:
        planned.set()
        return journal.append(record)

    ledger = EffectLedger("run1", append, loop_call=threads.loop_call)
    entered = threading.Event()

    def body() -> None:
        with ledger.declare("write", "/w/a"):
            entered.set()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(threads.run, body)
            await planned.wait()
            await all_blocked()
            assert not entered.is_set()
            gate.set()
    assert entered.is_set()
    assert ledger.records[0].stage is APPLIED


async def test_a_sync_body_whose_plan_cannot_become_durable_does_not_act() -> None:
    threads = Threads()

    async def fails() -> None:
        raise OSError("disk full")

    ledger = EffectLedger(
        "run1", lambda record: fails() if record.type == "effect/planned" else None, loop_call=threads.loop_call
    )
    entered = False

    def body() -> None:
        nonlocal entered
        with ledger.declare("write", "/w/a"):
            entered = True

    assert isinstance(await threads.run(body), OSError)
    assert not entered
    assert ledger.records[0].stage is NOT_APPLIED


async def test_a_thread_that_is_not_the_runners_is_refused() -> None:
    ledger, threads = ledger_of(Journal()), Threads()

    def body() -> None:
        with ledger.declare("write", "/w/a"):
            pass

    assert isinstance(await threads.run(body), ConfigError)
    assert ledger.records == ()


async def test_a_plain_with_on_the_loop_works_with_a_journal_that_needs_no_wait() -> None:
    ledger = ledger_of(Journal())
    with ledger.declare("write", "/w/a"):
        pass
    assert ledger.records[0].stage is APPLIED


async def test_a_plain_with_on_the_loop_is_refused_when_it_would_have_to_wait() -> None:
    class Durable:
        def __await__(self) -> Any:
            raise AssertionError("a loop cannot wait for itself")

    ledger = EffectLedger("run1", lambda record: Durable() if record.type == "effect/planned" else None)
    entered = False
    with pytest.raises(ConfigError, match="async with"), ledger.declare("write", "/w/a"):
        entered = True
    assert not entered
    assert ledger.records[0].stage is NOT_APPLIED
