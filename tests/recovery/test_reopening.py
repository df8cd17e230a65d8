"""A session opened again: keys, results, questions and doubts of its earlier owners."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import SecretStr
from recovery.cutting import copy_of
from stillness import quiet

from toolrunner import Decision, Policy, Runner, SqliteJournal, ToolCall, ToolContext, ToolError, ToolResult, tool
from toolrunner.errors import ConfigError, JournalOwned, NotSettled, RunnerClosed, UnknownRun
from toolrunner.facts import EffectState, NoteKind
from toolrunner.journal import JournalReader, boottime
from toolrunner.policy import ApprovalRequest
from toolrunner.results import Code, Ended, Outcome
from toolrunner.runner import shelf

pytestmark = pytest.mark.anyio
BOUND = 20.0


@asynccontextmanager
async def opened(path: Path, *tools: Any, **settings: Any) -> AsyncIterator[Runner]:
    """A runner over the journal at `path`, and a bound on all that is waited for in it."""
    with anyio.fail_after(BOUND):
        async with Runner(tools, journal=SqliteJournal.open(path), **settings) as runner:
            yield runner


class Shop:
    """`pay` counts what it really did; what happens to its body is the test's own."""

    def __init__(self, **options: Any) -> None:
        self.paid: list[int] = []
        self.fails = False

        @tool(parallel_safe=True, **options)
        async def pay(amount: int, ctx: ToolContext[Any]) -> str:
            async with ctx.effect("http", f"payment of {amount}") as effect:
                self.paid.append(amount)
                if self.fails:
                    raise ToolError("no answer")
                effect.receipt = "receipt"
            return f"paid {amount}"

        self.pay = pay


def pay(amount: int, key: str | None = None, **more: Any) -> ToolCall:
    return ToolCall("pay", {"amount": amount}, idempotency_key=key, **more)


# Keys.


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


# Results.


async def test_a_result_that_the_shelf_let_go_is_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "KEPT_RESULTS", 1)
    shop, path = Shop(), tmp_path / "j.db"
    async with opened(path, shop.pay) as runner:
        first = await runner.run(pay(1))
        await runner.run(pay(2))
        await runner.run(pay(3))
        with anyio.fail_after(BOUND):
            while first.run_id not in _settled(path):  # noqa: ASYNC110 - the writer's thread tells nobody
                await anyio.sleep(0.001)
        assert runner.result(first.run_id) == first
        assert await runner.wait(first.run_id) == first
        with pytest.raises(UnknownRun):
            runner.result("nobody")
    async with opened(path) as runner:
        assert runner.result(first.run_id) == first


def _settled(path: Path) -> set[str]:
    with JournalReader(path) as reader:
        return {entry.record.run_id for entry in reader.of_type("call/settled")}


async def test_a_session_by_its_name_has_one_owner_and_a_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    shop = Shop()
    with pytest.raises(ConfigError, match="session"):
        Runner(session="s", journal=SqliteJournalStandIn())
    with anyio.fail_after(BOUND):
        async with Runner([shop.pay], session="s") as runner:
            first = await runner.run(pay(1, "k"))
            with pytest.raises(JournalOwned):
                await Runner(session="s").__aenter__()
        async with Runner([shop.pay], session="s") as runner:
            assert (await runner.run(pay(1, "k"))).replayed
            assert runner.result(first.run_id) == first
    assert shop.paid == [1]


class SqliteJournalStandIn:
    """Any journal."""

    def append(self, *records: Any) -> None: ...

    @property
    def error(self) -> None:
        return None

    async def aclose(self) -> None: ...


# Questions.


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


MORE: dict[str, Any] = {"call_id": "c", "timeout": 50.0, "meta": {"a": [1]}, "provider_meta": {"id": "item"}, "kind": "custom"}


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


# Calls that ended, calls that did not.


@pytest.mark.case("E23")
async def test_what_ended_before_the_kill_is_told_by_its_end_and_what_ran_is_lost(tmp_path: Path) -> None:
    before, path = tmp_path / "before.db", tmp_path / "j.db"
    go, running = anyio.Event(), anyio.Event()

    @tool(parallel_safe=True)
    async def runs() -> str:
        running.set()
        await go.wait()
        return "first"

    @tool(parallel_safe=True)
    async def ends() -> str:
        return "second"

    async with opened(before, runs, ends) as runner:
        batch = runner.start_batch([ToolCall("runs", **MORE), ToolCall("ends", call_id="2")])
        await running.wait()
        while not _ended(before):  # noqa: ASYNC110 - the writer's thread tells nobody
            await anyio.sleep(0.001)
        copy_of(before, path)
        first, second = batch.run_ids
        go.set()
        await batch.results()
    async with opened(path, runs, ends) as runner:
        lost, ended = runner.result(first), runner.result(second)
    assert (lost.outcome, lost.code, lost.ended, lost.started) == (Outcome.FAILED, Code.LOST, Ended.LOST, True)
    assert (lost.call_id, lost.kind, lost.provider_meta) == ("c", "custom", {"id": "item"}), "its provider knows its answer"
    assert (ended.outcome, ended.code, ended.value) == (Outcome.SUCCEEDED, Code.HOOKS_LOST, "second")
    assert [note.kind for note in ended.notes] == [NoteKind.HOOKS_LOST]


def _ended(path: Path) -> bool:
    with JournalReader(path) as reader:
        return bool(reader.of_type("call/ended"))
