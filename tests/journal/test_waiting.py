"""How the writer's thread sleeps and is woken, and how it wakes those who wait for it."""

import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from journal.stage import numbers, recorded
from journal.vfs import watched_disk

from toolrunner import SqliteJournal
from toolrunner.journal.waiting import Sleeper, Until, Waiter, tell, waiting
from toolrunner.loops import native_loop, poster

pytestmark = pytest.mark.anyio

LONG = 60.0
"""Seconds; only for a sleep that nobody ends, which is the failure."""


class Lock:
    """A lock that has something done by another the first time that it is taken."""

    def __init__(self, before: Callable[[], object]) -> None:
        self._before: Callable[[], object] | None = before

    def __enter__(self) -> None:
        before, self._before = self._before, None
        if before is not None:
            before()

    def __exit__(self, *_: object) -> None: ...


def test_a_sleep_that_is_ended_before_it_began_is_over_at_once_and_ends_no_later_one() -> None:
    sleeper, lock = Sleeper(), threading.Lock()
    sleeper.until = Until.ANYTHING
    sleeper.wake()
    sleeper.wake()  # somebody else, who came later
    assert sleeper.sleep(LONG, lock)
    sleeper.until = Until.WANTED
    assert not sleeper.sleep(0, lock)
    assert sleeper.until is Until.NOTHING


def test_a_wake_between_the_end_of_the_time_and_the_look_is_not_lost_and_ends_no_later_sleep() -> None:
    sleeper = Sleeper()
    sleeper.until = Until.WANTED
    assert sleeper.sleep(0, Lock(sleeper.wake))  # type: ignore[arg-type]
    sleeper.until = Until.WANTED
    assert not sleeper.sleep(0, threading.Lock())


def test_nobody_who_is_awake_is_woken() -> None:
    sleeper = Sleeper()
    sleeper.wake()
    sleeper.until = Until.WANTED
    assert not sleeper.sleep(0, threading.Lock())


async def test_who_waits_is_woken_from_another_thread_and_one_who_gave_up_is_no_harm() -> None:
    post = poster()
    gone, _ = given_up = waiting(native_loop())
    happened, wait = waiting(native_loop())
    with anyio.CancelScope() as scope:
        scope.cancel()
        await given_up[1]
    assert scope.cancelled_caught
    thread = threading.Thread(target=tell, args=([Waiter(1, gone, post), Waiter(1, happened, post)],))
    with anyio.fail_after(LONG):
        thread.start()
        await wait
    thread.join()


def test_each_loop_has_one_callback_and_one_that_is_closed_keeps_nobody_waiting() -> None:
    woken: list[str] = []
    posted: list[Callable[[], object]] = []

    def closed(_: Callable[[], object]) -> None:
        raise RuntimeError

    def at(name: str) -> Callable[[], object]:
        return lambda: woken.append(name)

    tell([Waiter(1, at("a"), posted.append), Waiter(1, at("x"), closed), Waiter(2, at("b"), posted.append)])
    assert len(posted) == 1
    posted[0]()
    assert woken == ["a", "b"]


@pytest.mark.parametrize("records", [1, 2, 31, 32, 33, 64, 65, 200])
async def test_what_is_appended_together_is_one_commit_in_its_order(tmp_path: Path, records: int) -> None:
    with watched_disk() as disk:
        journal = SqliteJournal.open(tmp_path / "journal.db")
        disk.steps.clear()
        with anyio.fail_after(LONG):
            waiting_for = journal.append(*[recorded(number) for number in range(1, records + 1)])
            assert waiting_for is not None
            await waiting_for
            flushes = [step for step in disk.steps if step.op == "sync" and step.name == "journal.db-wal"]
            await journal.aclose()
    assert len(flushes) == 1
    assert numbers(tmp_path) == list(range(1, records + 1))
