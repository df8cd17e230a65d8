"""What a runner does with its journal when it is entered and left, and with tools that come in between."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from toolrunner import Runner, SqliteJournal, ToolCall, ToolContext, ToolError, tool
from toolrunner.errors import ConfigError, RunnerClosed
from toolrunner.recovery import Recovered, recover
from toolrunner.results import Code
from toolrunner.runner import lasting

pytestmark = pytest.mark.anyio
BOUND = 60.0


def books(fails: bool, asked: list[str]) -> Any:
    """A tool `book` that can find out what became of a call."""

    @tool(parallel_safe=True, resources=lambda _: ["account"])
    async def book(amount: int, ctx: ToolContext[Any]) -> str:
        async with ctx.effect("http", "booking"):
            if fails:
                raise ToolError("no answer")
        return "booked"

    @book.reconcile
    async def look(ctx: ToolContext[Any], call: ToolCall, effects: Any) -> str:
        asked.append(ctx.run_id)
        return "unknown"

    return book


async def test_a_tool_that_is_registered_later_is_asked_about_calls_of_earlier_owners(tmp_path: Path) -> None:
    asked: list[str] = []
    with anyio.fail_after(BOUND):
        async with Runner([books(True, asked)], journal=SqliteJournal.open(tmp_path / "j.db")) as runner:
            first = await runner.run("book", {"amount": 1})
        async with Runner(journal=SqliteJournal.open(tmp_path / "j.db")) as runner:
            runner.register(books(False, asked))
            second = await runner.run("book", {"amount": 2})
    assert asked == [first.run_id]
    assert (second.code, second.about_run_id) == (Code.IN_DOUBT, first.run_id)


async def test_a_journal_is_let_go_when_its_runner_cannot_be_made(tmp_path: Path) -> None:
    def broken() -> Any:
        raise ConfigError("supervisor", None, "one that works")

    with anyio.fail_after(BOUND):
        with pytest.raises(ConfigError):
            async with Runner(journal=SqliteJournal.open(tmp_path / "j.db"), supervisor=broken):
                pass
        async with Runner(journal=SqliteJournal.open(tmp_path / "j.db")) as runner:
            assert runner.recovery is not None


async def test_a_runner_is_entered_once_also_by_two_tasks_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def with_something_to_end(journal: SqliteJournal) -> Recovered:
        await checkpoint()
        return await recover(journal)

    monkeypatch.setattr(lasting, "recover", with_something_to_end)
    refused: list[RunnerClosed] = []
    runner = Runner(journal=SqliteJournal.open(tmp_path / "j.db"))

    async def enter() -> None:
        try:
            await runner.__aenter__()
        except RunnerClosed as error:
            refused.append(error)

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(enter)
            tasks.start_soon(enter)
        await runner.aclose()
    assert len(refused) == 1
