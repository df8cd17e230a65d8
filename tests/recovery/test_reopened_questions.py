"""Questions that an earlier owner asked elsewhere: answered after a restart, for the call that was asked about."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import SecretStr
from recovery.cutting import copy_of
from recovery.shop import BOUND, MORE, Shop, opened, pay
from stillness import quiet

from toolrunner import Decision, Policy, Runner, SqliteJournal, ToolCall, tool
from toolrunner.errors import NotSettled, RunnerClosed
from toolrunner.policy import ApprovalRequest
from toolrunner.results import Code, Outcome

pytestmark = pytest.mark.anyio


class Elsewhere:
    """An approver that has the question answered elsewhere."""

    concurrent = True

    def __init__(self) -> None:
        self.asked = anyio.Event()

    async def decide(self, request: ApprovalRequest, signal: object) -> Decision | None:
        del request, signal
        self.asked.set()
        return None


POLICY = Policy.of(ask=["*"])
ASK: dict[str, Any] = {"policy": POLICY, "approver": Elsewhere()}


async def asked_and_killed(path: Path, *tools: Any, call: ToolCall, **settings: Any) -> str:
    """One owner asks elsewhere and dies; the run id of the call."""
    approver, before = Elsewhere(), SqliteJournal.open(path.with_suffix(".before"))
    with anyio.fail_after(BOUND):
        async with Runner(tools, journal=before, policy=POLICY, approver=approver, **settings) as runner:
            batch = runner.start_batch([call])
            await approver.asked.wait()
            await quiet()
            [request] = runner.pending_approvals
            await before.flush()
            copy_of(before.path, path)
            batch.abort("the test needs it no more")
            await batch.results()
    return request.run_id


async def test_a_question_asked_elsewhere_is_answered_after_a_restart_and_its_call_runs_under_its_own_id(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "j.db"
    run_id = await asked_and_killed(path, shop.pay, call=pay(1, "k", call_id="c"))
    for _ in range(2):  # it stays open over any number of restarts
        async with opened(path, shop.pay, **ASK) as runner:
            [request] = runner.pending_approvals
            assert (request.run_id, request.tool, request.arguments, request.call_id) == (run_id, "pay", {"amount": 1}, "c")
            with pytest.raises(NotSettled):
                runner.result(run_id)
            assert shop.paid == []
    async with opened(path, shop.pay, **ASK) as runner:
        [request] = runner.pending_approvals
        assert runner.decide(request.approval_id, Decision.allow())
        assert not runner.decide(request.approval_id, Decision.allow())
        assert runner.pending_approvals == ()
        result = await runner.wait(run_id)
        assert (result.outcome, result.value, result.run_id, result.call_id) == (Outcome.SUCCEEDED, "paid 1", run_id, "c")
        assert runner.result(run_id) == result
    async with opened(path, shop.pay, **ASK) as runner:
        assert runner.pending_approvals == ()
        assert runner.result(run_id) == result
    assert shop.paid == [1]


async def test_a_no_after_a_restart_is_a_denial(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "j.db"
    run_id = await asked_and_killed(path, shop.pay, call=pay(1))
    async with opened(path, shop.pay, **ASK) as runner:
        [request] = runner.pending_approvals
        assert runner.decide(request.approval_id, Decision.deny("not today"))
        result = await runner.wait(run_id)
    assert (result.outcome, result.code, result.started) == (Outcome.DENIED, Code.DENIED, False)
    assert shop.paid == []


async def test_an_approval_does_not_cover_a_tool_that_was_changed_meanwhile(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "j.db"
    run_id = await asked_and_killed(path, shop.pay, call=pay(1))
    other = Shop(destructive=True)
    async with opened(path, other.pay, **ASK) as runner:
        [request] = runner.pending_approvals
        runner.decide(request.approval_id, Decision.allow())
        result = await runner.wait(run_id)
    assert (result.code, result.started) == (Code.GRANT_EXPIRED, False)
    assert other.paid == []


async def test_a_rule_that_denies_today_wins_over_a_yes_to_yesterdays_question(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "j.db"
    run_id = await asked_and_killed(path, shop.pay, call=pay(1))
    async with opened(path, shop.pay, policy=Policy.of(deny=["pay"])) as runner:
        [request] = runner.pending_approvals
        runner.decide(request.approval_id, Decision.allow())
        assert (await runner.wait(run_id)).outcome is Outcome.DENIED
    assert shop.paid == []


async def test_other_arguments_that_are_allowed_after_a_restart_are_asked_about_anew(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "j.db"
    run_id = await asked_and_killed(path, shop.pay, call=pay(1))
    async with opened(path, shop.pay, **ASK) as runner:
        [request] = runner.pending_approvals
        runner.decide(request.approval_id, Decision.allow(arguments={"amount": 2}))
        await quiet()
        [request] = runner.pending_approvals
        assert request.arguments == {"amount": 2}
        runner.decide(request.approval_id, Decision.allow())
        result = await runner.wait(run_id)
    assert (result.value, result.modified_by) == ("paid 2", "approver")
    assert shop.paid == [2]


async def test_a_question_whose_time_is_over_at_the_restart_is_a_call_that_never_started(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "j.db"
    run_id = await asked_and_killed(path, shop.pay, call=pay(1), approval_timeout=0.3)
    with anyio.fail_after(BOUND):
        await anyio.sleep(0.3)  # the kernel's clock, which no test can turn
    async with opened(path, shop.pay, **ASK) as runner:
        assert runner.pending_approvals == ()
        result = runner.result(run_id)
    assert (result.code, result.started) == (Code.ABORTED_BEFORE_DISPATCH, False)


async def test_a_question_whose_time_ends_while_it_waits_is_a_denial(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "j.db"
    run_id = await asked_and_killed(path, shop.pay, call=pay(1), approval_timeout=1.0)
    async with opened(path, shop.pay, **ASK) as runner:
        result = await runner.wait(run_id)
    assert result.outcome in (Outcome.DENIED, Outcome.ABORTED)  # on a slow machine its time was over before
    assert not result.started


async def test_a_call_is_resumed_with_all_that_it_was_made_with(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "j.db"
    run_id = await asked_and_killed(path, shop.pay, call=pay(1, "key", **MORE))
    seen: list[ToolCall] = []
    async with opened(path, shop.pay, **ASK) as runner:
        runner.guard(seen.append)
        [request] = runner.pending_approvals
        runner.decide(request.approval_id, Decision.allow())
        result = await runner.wait(run_id)
    assert seen == [pay(1, "key", **MORE)]
    assert (result.kind, result.provider_meta, result.value) == ("custom", {"id": "item"}, "paid 1")


async def test_a_call_whose_arguments_were_masked_is_not_resumed(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "j.db"

    @tool
    async def log_in(token: SecretStr) -> None:
        shop.paid.append(len(token.get_secret_value()))

    call = ToolCall("log_in", {"token": "correct-horse"}, **MORE)
    run_id = await asked_and_killed(path, log_in, call=call)
    async with opened(path, log_in, **ASK) as runner:
        assert runner.pending_approvals == ()
        result = runner.result(run_id)
    assert (result.code, result.kind, result.provider_meta) == (Code.ABORTED_BEFORE_DISPATCH, "custom", {"id": "item"})
    assert shop.paid == []


async def test_who_waits_for_a_call_that_waits_is_told_when_the_runner_closes(tmp_path: Path) -> None:
    shop, path = Shop(), tmp_path / "j.db"
    run_id = await asked_and_killed(path, shop.pay, call=pay(1))
    told: list[str] = []
    with anyio.fail_after(BOUND):
        runner = await Runner([shop.pay], journal=SqliteJournal.open(path), **ASK).__aenter__()

        async def wait() -> None:
            with pytest.raises(RunnerClosed):
                await runner.wait(run_id)
            told.append("closed")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await quiet()
            await runner.aclose()
    assert told == ["closed"]
