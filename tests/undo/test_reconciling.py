"""What became of a call in doubt: who is asked, within which bounds, and what the answer is worth."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from undo.doubtful import BOUND, check_in_doubt, doubtful, reconciled, says, services, write

from toolrunner import MemoryJournal, Runner, ToolContext
from toolrunner.errors import ConfigError, ToolDefinitionError
from toolrunner.pipeline import reconcile
from toolrunner.results import Outcome
from toolrunner.tools import Reconciled

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("answer", [None, True, "COMPLETED", 7, ["none"], "partial"])
async def test_an_answer_that_is_none_counts_as_unknown(answer: object) -> None:
    journal = MemoryJournal()
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(says(answer)), write], deps="deps", journal=journal) as runner:
            first = await runner.run("charge")
            check_in_doubt(await runner.run("write"), first)
    [(as_, by, note)] = reconciled(journal)
    assert (as_, by) == ("unknown", "tool")
    assert "expected one of 'completed', 'none', 'unknown'" in note


async def test_a_reconcile_that_raises_counts_as_unknown_and_its_error_is_on_record() -> None:
    async def found(ctx: object, call: object, effects: object) -> str:
        raise ConnectionError("the bank is closed")

    journal = MemoryJournal()
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(found), write], journal=journal) as runner:
            first = await runner.run("charge")
            check_in_doubt(await runner.run("write"), first)
    [(as_, by, note)] = reconciled(journal)
    assert (as_, by) == ("unknown", "tool")
    assert "the bank is closed" in note


async def test_a_reconcile_that_hangs_is_given_up_after_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "RECONCILE_LIMIT", 0.02)

    async def found(ctx: object, call: object, effects: object) -> str:
        await anyio.sleep_forever()
        return "none"

    journal = MemoryJournal()
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(found), write], journal=journal) as runner:
            first = await runner.run("charge")
            check_in_doubt(await runner.run("write"), first)
    [(as_, _, note)] = reconciled(journal)
    assert as_ == "unknown"
    assert "did not answer within" in note


async def test_two_writers_wait_for_one_look() -> None:
    asked = 0
    go_on = anyio.Event()

    async def found(ctx: object, call: object, effects: object) -> str:
        nonlocal asked
        asked += 1
        await go_on.wait()
        return "completed"

    answers: list[Reconciled] = []
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(found)]) as runner:
            first = await runner.run("charge")

            async def ask() -> None:
                answers.append(await reconcile.settle(services(runner), first.run_id))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                tasks.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                go_on.set()
    assert (asked, answers) == (1, [Reconciled.COMPLETED] * 2)


async def test_the_user_may_still_know_what_the_tool_could_not_tell() -> None:
    journal = MemoryJournal()
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(says("unknown")), write], deps="deps", journal=journal) as runner:
            first = await runner.run("charge")
            check_in_doubt(await runner.run("write"), first)
            assert await reconcile.reconcile_as(services(runner), first.run_id, "none", "looked at the statement")
            assert await reconcile.settle(services(runner), first.run_id) is Reconciled.NONE
            assert (await runner.run("write")).outcome is Outcome.SUCCEEDED
            assert not await reconcile.reconcile_as(services(runner), "nobody", "none")
            with pytest.raises(ConfigError, match="'completed' or 'none'"):
                await reconcile.reconcile_as(services(runner), first.run_id, "unknown")  # type: ignore[arg-type]
    assert reconciled(journal)[:2] == [("unknown", "tool", ""), ("none", "user", "looked at the statement")]


async def test_a_reconcile_function_can_change_nothing_and_run_nothing() -> None:
    refused: list[str] = []

    async def found(ctx: ToolContext[Any], call: object, effects: object) -> str:
        attempts: list[Callable[[], Any]] = [
            lambda: ctx.effect("http", "x"),
            lambda: ctx.services.run("write", {}),
            lambda: ctx.follow_up(1),
        ]
        for attempt in attempts:
            try:
                attempt()
            except reconcile.LooksOnly as error:
                refused.append(str(error).split()[0])
        ctx.output("looking")
        ctx.progress("still looking")
        with ctx.cleanup():
            pass
        try:
            await runner.run("write")
        except Exception as error:
            refused.append(type(error).__name__)
        return "none"

    with anyio.fail_after(BOUND):
        async with Runner([doubtful(found), write]) as runner:
            await runner.run("charge")
            assert (await runner.run("write")).outcome is Outcome.SUCCEEDED
    assert refused == ["ctx.effect", "ctx.run", "ctx.follow_up", "NestedRun"]


def test_a_reconcile_function_must_be_one() -> None:
    charge = doubtful(None)
    with pytest.raises(ToolDefinitionError, match="async def"):
        charge.reconcile(lambda ctx, call, effects: "none")

    async def two(ctx: object, call: object) -> str:
        return "none"

    with pytest.raises(ToolDefinitionError, match=r"\(ctx, call, effects\)"):
        charge.reconcile(two)
    found = says("none")
    assert charge.reconcile(found) is found
    with pytest.raises(ToolDefinitionError, match="already"):
        charge.reconcile(found)
