"""Calls with a key: started once per session, replayed visibly, in doubt when nobody knows."""

from typing import Any

import anyio
import pytest
from batches.stage import Stage, opened, text
from stillness import quiet

from toolrunner import AbortController, ToolCall, ToolContext, ToolError, tool
from toolrunner.records import Record

pytestmark = pytest.mark.anyio


def pay(amount: int, key: str | None = "k", **more: Any) -> ToolCall:
    return ToolCall("pay", {"amount": amount}, idempotency_key=key, **more)


class Bank:
    """A tool that counts what really happened."""

    def __init__(self, **options: Any) -> None:
        self.paid: list[int] = []
        self.stage = Stage()

        @tool(name="pay", parallel_safe=True, **options)
        async def pay_(amount: int, ctx: ToolContext[Any]) -> str:
            async with ctx.effect("http", f"payment of {amount}") as effect:
                self.paid.append(amount)
                await self.stage.play(str(len(self.paid)))
                effect.receipt = f"receipt {len(self.paid)}"
            return f"paid {amount}"

        self.tool = pay_


async def test_a_completed_key_is_replayed_and_says_so() -> None:
    bank, records = Bank(), list[Record]()
    bank.stage.end("1")
    async with opened(bank.tool) as runner:
        first = await runner.run(pay(5, call_id="one"))
        (again,) = await runner.run_batch([pay(5, call_id="two")], on_event=records.append)
    assert bank.paid == [5]
    assert (again.outcome, again.value, again.effects, again.process) == (first.outcome, first.value, first.effects, None)
    assert (again.replayed, again.about_run_id, again.call_id) == (True, first.run_id, "two")
    assert (first.replayed, first.about_run_id) == (False, None)
    assert again.run_id != first.run_id
    assert first.run_id in text(again)
    assert "nothing was run again" in text(again)
    assert f"recorded result of {first.run_id}" in again.summary()
    assert [record.type for record in records if record.type in ("call/dispatched", "call/ended")] == []


async def test_a_replay_of_a_replay_names_the_call_that_ran() -> None:
    bank = Bank()
    bank.stage.end("1")
    async with opened(bank.tool) as runner:
        first = await runner.run(pay(5))
        await runner.run(pay(5))
        third = await runner.run(pay(5))
    assert third.about_run_id == first.run_id


async def test_two_calls_with_one_key_at_once_start_once_and_the_second_waits() -> None:
    bank = Bank()
    async with opened(bank.tool) as runner:
        batch = runner.start_batch([pay(5, call_id="a"), pay(5, call_id="b")])
        other = runner.start_batch([pay(5, call_id="c")])
        await bank.stage.started("1")
        await quiet()
        assert bank.paid == [5]
        bank.stage.end("1")
        a, b = await batch
        (c,) = await other
    assert bank.paid == [5]
    assert sorted(result.replayed for result in (a, b, c)) == [False, True, True]
    assert {result.value for result in (a, b, c)} == {"paid 5"}


async def test_a_call_that_waits_for_its_key_can_be_aborted() -> None:
    bank, controller = Bank(), AbortController()
    async with opened(bank.tool) as runner:
        one = runner.start_batch([pay(5)])
        await bank.stage.started("1")
        two = runner.start_batch([pay(5)], signal=controller.signal)
        await quiet()
        controller.abort("not waiting")
        (result,) = await two
        assert (result.outcome, result.code, result.started) == ("aborted", "ABORTED_BEFORE_DISPATCH", False)
        bank.stage.end("1")
        assert (await one)[0].outcome == "succeeded"


@pytest.mark.parametrize("other", [ToolCall("pay", {"amount": 6}, idempotency_key="k"), ToolCall("else_", idempotency_key="k")])
async def test_the_same_key_with_other_arguments_or_another_tool_is_refused(other: ToolCall) -> None:
    bank, ran = Bank(), list[str]()
    bank.stage.end("1")

    @tool
    async def else_() -> None:
        ran.append("else")

    async with opened(bank.tool, else_) as runner:
        await runner.run(pay(5))
        result = await runner.run(other)
    assert (bank.paid, ran) == ([5], [])
    assert (result.outcome, result.code, result.started, result.retry) == ("rejected", "INVALID_ARGUMENTS", False, "fix_first")
    assert result.error is not None
    assert "'k'" in result.error.message


async def test_a_key_whose_call_may_have_taken_effect_is_in_doubt() -> None:
    bank, controller = Bank(), AbortController()
    async with opened(bank.tool) as runner:
        batch = runner.start_batch([pay(5)], signal=controller.signal)
        await bank.stage.started("1")
        controller.abort()
        (first,) = await batch
        assert first.effects.state == "unknown"
        second = await runner.run(pay(5))
        bank.stage.end("2")
        third = await runner.run(pay(5, key="another"))
    assert bank.paid == [5, 5]
    assert (second.outcome, second.code, second.started, second.retry) == ("rejected", "IN_DOUBT", False, "check_first")
    assert second.about_run_id == first.run_id
    assert first.run_id in text(second)
    assert "may have taken effect" in text(second)
    assert third.outcome == "succeeded"


async def test_a_key_whose_call_was_never_started_is_free_again() -> None:
    bank, controller = Bank(), AbortController()
    bank.stage.end("1")
    controller.abort()
    async with opened(bank.tool) as runner:
        first = await runner.run(pay(5), signal=controller.signal)
        assert not first.started
        second = await runner.run(pay(5))
    assert (second.outcome, second.replayed) == ("succeeded", False)
    assert bank.paid == [5]


async def test_a_key_whose_call_failed_without_effects_is_free_again_and_those_who_waited_take_it() -> None:
    stage, tries = Stage(), list[int]()

    @tool(name="pay", read_only=True)
    async def look(amount: int) -> str:
        tries.append(amount)
        await stage.play(str(len(tries)))
        if len(tries) == 1:
            raise ToolError("the network")
        return "seen"

    async with opened(look) as runner:
        one = runner.start_batch([pay(5)])
        await stage.started("1")
        two = runner.start_batch([pay(5)])
        await quiet()
        stage.end("1", "2")
        (first,), (second,) = await one, await two
    assert (first.outcome, second.outcome, second.replayed) == ("failed", "succeeded", False)
    assert tries == [5, 5]


async def test_a_call_that_was_completed_and_then_aborted_is_replayed_as_that() -> None:
    bank, controller, finishing = Bank(), AbortController(), anyio.Event()
    bank.stage.end("1")

    async def after(call: Any, result: Any, signal: Any) -> None:
        finishing.set()
        await signal.wait()

    async with opened(bank.tool) as runner:
        take_back = runner.post_execute(after)
        batch = runner.start_batch([pay(5)], signal=controller.signal)
        await finishing.wait()
        controller.abort()
        (first,) = await batch
        take_back()
        second = await runner.run(pay(5))
    assert bank.paid == [5]
    assert (first.outcome, first.effects.state, first.effects.evidence) == ("aborted", "completed", "reported")
    assert (second.replayed, second.outcome, second.value) == (True, "aborted", "paid 5")


@pytest.mark.parametrize("where", ["tool", "runner"])
async def test_dedupe_by_arguments_answers_an_equal_call_from_the_first(where: str) -> None:
    ran: list[tuple[int, str]] = []

    @tool(dedupe_by_arguments=where == "tool")
    async def order(n: int, note: str = "none") -> int:
        ran.append((n, note))
        return len(ran)

    async with opened(order, dedupe_by_arguments=where == "runner") as runner:
        first = await runner.run("order", '{"n": 1, "note": "a"}')
        same = await runner.run("order", '{"note": "a", "n": 1}')
        other = await runner.run("order", {"n": 1, "note": "b"})
    assert ran == [(1, "a"), (1, "b")]
    assert (same.value, same.replayed, same.about_run_id) == (1, True, first.run_id)
    assert (other.value, other.replayed) == (2, False)


async def test_dedupe_with_an_expiry_runs_again_after_it() -> None:
    ran: list[int] = []

    @tool(dedupe_by_arguments=0.05)
    async def order(n: int) -> int:
        ran.append(n)
        return len(ran)

    async with opened(order) as runner:
        assert (await runner.run("order", {"n": 1})).value == 1
        with anyio.fail_after(60):
            while (result := await runner.run("order", {"n": 1})).replayed:  # noqa: ASYNC110 - the expiry is a clock's
                await anyio.sleep(0.01)
    assert (result.value, len(ran)) == (2, 2)


async def test_keys_are_a_sessions_own() -> None:
    bank = Bank()
    bank.stage.end("1", "2")
    for _ in range(2):
        async with opened(bank.tool) as runner:
            assert (await runner.run(pay(5))).replayed is False
    assert bank.paid == [5, 5]


async def test_a_replay_that_is_aborted_at_entry_is_not_replayed() -> None:
    bank, controller = Bank(), AbortController()
    bank.stage.end("1")
    controller.abort()
    async with opened(bank.tool) as runner:
        await runner.run(pay(5))
        result = await runner.run(pay(5), signal=controller.signal)
    assert (result.outcome, result.code, result.replayed) == ("aborted", "ABORTED_BEFORE_DISPATCH", False)
