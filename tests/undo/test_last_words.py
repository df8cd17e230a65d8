"""Who has the last word on a call in doubt, and that those who wait for a word get one."""

from collections.abc import Awaitable
from typing import Any

import anyio
import pytest

from toolrunner import MemoryJournal, Runner, ToolCall, ToolContext, tool
from toolrunner.pipeline import reconcile
from toolrunner.records import CallReconciled, Record
from toolrunner.tools import Reconciled

pytestmark = pytest.mark.anyio

BOUND = 10.0


class Disk:
    """A journal that is slow with the user's word, or broken for the tool's."""

    error: str | None = None

    def __init__(self, *, broken: bool = False) -> None:
        self.inner = MemoryJournal()
        self.is_on_disk = anyio.Event()
        self._broken = broken

    def append(self, *records: Record) -> Awaitable[None] | None:
        words = [record.by for record in records if isinstance(record, CallReconciled)]
        if "tool" in words and self._broken:
            raise RuntimeError("the journal has a bug")
        self.inner.append(*records)
        return self.is_on_disk.wait() if "user" in words and not self.is_on_disk.is_set() else None

    async def aclose(self) -> None:
        pass


def charge(go_on: anyio.Event) -> Any:
    """A tool that is left in the middle of its act, and says "none" afterwards, once it may."""

    @tool()
    async def charge(ctx: ToolContext[Any]) -> None:
        async with ctx.effect("http", "account"):
            raise OSError("connection reset")

    @charge.reconcile
    async def found(ctx: object, call: ToolCall, effects: object) -> str:
        await go_on.wait()
        return "none"

    return charge


async def test_the_users_word_is_the_last_one_also_in_the_journal() -> None:
    go_on, disk = anyio.Event(), Disk()
    with anyio.fail_after(BOUND):
        async with Runner([charge(go_on)], journal=disk) as runner:
            services: Any = runner._services
            first = await runner.run("charge")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(reconcile.settle, services, first.run_id)
                tasks.start_soon(runner.reconcile, first.run_id, "completed")
                await anyio.wait_all_tasks_blocked()
                go_on.set()
                await anyio.wait_all_tasks_blocked()
                disk.is_on_disk.set()
            assert await reconcile.settle(services, first.run_id) is Reconciled.COMPLETED
    words = [(one.as_, one.by) for one in disk.inner if isinstance(one, CallReconciled)]
    assert words[:2] == [("completed", "user"), ("none", "tool")], "the tool answered while the user's word was on its way"
    assert words[-1] == ("completed", "user")


async def test_whoever_waits_for_the_tools_answer_gets_it_although_it_cannot_be_recorded() -> None:
    go_on, disk = anyio.Event(), Disk(broken=True)
    go_on.set()
    with anyio.fail_after(BOUND):
        async with Runner([charge(go_on)], journal=disk) as runner:
            first = await runner.run("charge")
            with anyio.fail_after(2):
                assert await reconcile.settle(runner._services, first.run_id) is Reconciled.NONE  # type: ignore[arg-type]
