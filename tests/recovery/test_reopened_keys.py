"""The keys of a session that is opened again: replayed, free or in doubt, as its earlier owners left them."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from recovery.shop import BOUND, Shop, opened, pay

from toolrunner import Runner, SqliteJournal, ToolCall, ToolContext, ToolError, ToolResult, tool
from toolrunner.facts import EffectState
from toolrunner.journal import boottime
from toolrunner.results import Code, Outcome

pytestmark = pytest.mark.anyio


async def test_a_completed_key_is_replayed_and_a_free_one_is_free(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "j.db"
    async with opened(path, shop.pay) as runner:
        first = await runner.run(pay(1, "k"))
        await runner.run(ToolCall("pay", {"wrong": 1}, idempotency_key="free"))
    async with opened(path, shop.pay) as runner:
        again, other, free = await runner.run_batch([pay(1, "k"), pay(2, "k"), pay(3, "free")])
    assert (again.replayed, again.about_run_id, again.value) == (True, first.run_id, "paid 1")
    assert other.code is Code.INVALID_ARGUMENTS
    assert (free.outcome, free.replayed) == (Outcome.SUCCEEDED, False)
    assert shop.paid == [1, 3]


async def test_a_key_that_the_table_has_forgotten_is_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolrunner.pipeline.idempotency.KEPT_KEYS", 1)
    shop, journal = Shop(), SqliteJournal.open(tmp_path / "j.db")
    with anyio.fail_after(BOUND):
        async with Runner([shop.pay], journal=journal) as runner:
            await runner.run_batch([pay(1, "a"), pay(2, "b"), pay(3, "c")])
            await journal.flush()
            again = await runner.run_batch([pay(1, "a"), pay(2, "b"), pay(3, "c")])
    assert [result.replayed for result in again] == [True] * 3
    assert sorted(shop.paid) == [1, 2, 3]


async def test_a_key_that_is_free_is_free_at_once_whatever_is_on_disk_yet(tmp_path: Path) -> None:
    path = tmp_path / "j.db"

    @tool(parallel_safe=True, read_only=True)
    async def reads() -> str:
        raise ToolError("not there")

    async with opened(path, reads) as runner:
        call = ToolCall("reads", {}, idempotency_key="k")
        for _ in range(20):
            assert (await runner.run(call)).code is Code.TOOL_ERROR


async def test_a_key_in_doubt_stays_in_doubt_over_any_number_of_openings(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "j.db"
    shop.fails = True
    async with opened(path, shop.pay) as runner:
        first = await runner.run(pay(1, "k"))
        assert first.effects.state is EffectState.UNKNOWN
    for _ in range(3):
        async with opened(path, shop.pay) as runner:
            again = await runner.run(pay(1, "k"))
        assert (again.code, again.about_run_id) == (Code.IN_DOUBT, first.run_id)
    assert shop.paid == [1]


def check_found_since(again: ToolResult) -> None:
    """The facts are those of the end of the call; the answer says that more is known by now, and what."""
    assert again.effects.state is EffectState.UNKNOWN
    assert again.retry == "no"
    text = str(again.content_for_model())
    assert "it did take effect; do not repeat it" in text
    assert "check before" not in text


@pytest.mark.parametrize("word", ["completed", "none"])
async def test_the_users_word_clears_a_key_up_now_and_after_a_restart(word: Any, tmp_path: Path) -> None:
    for restart in (False, True):
        shop, path = Shop(), tmp_path / f"{restart}.db"
        shop.fails = True
        async with opened(path, shop.pay) as runner:
            first = await runner.run(pay(1, "k"))
            await runner.reconcile(first.run_id, word, "I looked")
            shop.fails = False
            again = await runner.run(pay(1, "k")) if not restart else None
        if restart:
            async with opened(path, shop.pay) as runner:
                again = await runner.run(pay(1, "k"))
        assert again is not None
        assert again.replayed is (word == "completed")
        if word == "completed":
            check_found_since(again)
        assert shop.paid == ([1] if word == "completed" else [1, 1])


@pytest.mark.case("E17")
@pytest.mark.parametrize("answer", ["completed", "none", "unknown"])
async def test_a_call_in_doubt_of_an_earlier_owner_keeps_writers_out_until_its_tool_was_asked(
    answer: str, tmp_path: Path
) -> None:
    asked: list[str] = []
    path = tmp_path / "j.db"
    fails = True

    @tool(parallel_safe=True, resources=lambda args: ["account"])
    async def book(amount: int, ctx: ToolContext[Any]) -> str:
        async with ctx.effect("http", "booking"):
            if fails:
                raise ToolError("no answer")
        return "booked"

    @book.reconcile
    async def look(ctx: ToolContext[Any], call: ToolCall, effects: Any) -> str:
        asked.append(ctx.run_id)
        return answer

    async with opened(path, book) as runner:
        first = await runner.run(ToolCall("book", {"amount": 1}, idempotency_key="k"))
    fails = False
    async with opened(path, book) as runner:
        second = await runner.run(ToolCall("book", {"amount": 2}))
        third = await runner.run(ToolCall("book", {"amount": 1}, idempotency_key="k"))
    assert asked == [first.run_id]
    if answer == "unknown":
        assert (second.code, second.about_run_id) == (Code.IN_DOUBT, first.run_id)
        assert third.code is Code.IN_DOUBT
    else:
        assert second.outcome is Outcome.SUCCEEDED
        assert third.replayed is (answer == "completed")
        if answer == "completed":
            check_found_since(third)


async def test_a_key_of_arguments_is_kept_until_its_time_is_over_and_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, path = Shop(dedupe_by_arguments=100.0), tmp_path / "j.db"
    async with opened(path, shop.pay) as runner:
        assert not (await runner.run(pay(1))).replayed
    async with opened(path, shop.pay) as runner:
        assert (await runner.run(pay(1))).replayed
        assert not (await runner.run(pay(2))).replayed
    later = boottime() + 101
    monkeypatch.setattr("toolrunner.recovery.keys.boottime", lambda: later)
    async with opened(path, shop.pay) as runner:
        assert not (await runner.run(pay(1))).replayed
    assert shop.paid == [1, 2, 1]


async def test_a_changed_tool_does_not_answer_for_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    shop = Shop(dedupe_by_arguments=True)
    async with opened(path, shop.pay) as runner:
        await runner.run(pay(1))
    other = Shop(dedupe_by_arguments=True, idempotent=True)
    async with opened(path, other.pay) as runner:
        assert not (await runner.run(pay(1))).replayed
