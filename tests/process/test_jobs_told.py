"""Whoever is told that a job starts is told of its end, also where nothing of it was released."""

from collections.abc import Awaitable, Callable

import anyio
import pytest
from process.shapes import BOUND, sh

from toolrunner.process import Job, JobTable, LaunchPlan, Prepared, Supervisor

pytestmark = pytest.mark.anyio


class SlowNews:
    """Whom a table tells; a start never becomes durable."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.asked = anyio.Event()

    async def _never(self) -> None:
        self.asked.set()
        await anyio.sleep_forever()

    def started(self, job: Job, process: Prepared) -> Awaitable[None]:
        self.told.append(f"{job.id} started")
        return self._never()

    def ended(self, job: Job) -> None:
        self.told.append(f"{job.id} ended, {job.state}")

    def writes(self) -> Callable[[], None]:
        raise AssertionError("nothing of it runs")


async def test_a_job_that_was_told_and_is_cancelled_before_its_release_is_told_to_have_ended(supervisor: Supervisor) -> None:
    news = SlowNews()
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as root:
            table = JobTable(supervisor.prepare, lambda make, _name: root.start_soon(make), news)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(table.start, LaunchPlan(sh("true")))
                await news.asked.wait()
                tasks.cancel_scope.cancel()
    started, ended = news.told
    assert ended == started.replace("started", "ended, stopped")
    assert table.list() == ()
